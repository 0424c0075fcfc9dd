"""The simulated phone by itself: what is in the tree, what a touch does, what is true afterwards."""

import io
import re
import tracemalloc
from dataclasses import dataclass
from typing import ClassVar

import pytest
from PIL import Image

from apex_lab.phone import Phone
from apex_lab.phone.app import App
from apex_lab.phone.apps.launcher import Launcher
from apex_lab.phone.errors import InvalidArgument, InvalidElementState, UnknownError
from apex_lab.phone.geometry import Point, Rect
from apex_lab.phone.locators import Locator, find
from apex_lab.phone.views import NAMES, View
from apex_lab.phone.widgets import item
from apex_lab.phone.windows import Window, page

SETTINGS, CONTACTS, TASKS = "com.android.settings", "com.android.contacts", "org.example.tasks"


def see(phone: Phone, xpath: str) -> View:
    """The one view an XPath finds on the screen."""
    found = find(phone.snapshot(), Locator("xpath", xpath), phone.package)
    assert len(found) == 1, f"{xpath} finds {len(found)} on {phone.state()['page']}"
    return found[0]


def labelled(text: str) -> str:
    return f"(//*[@text='{text}' or @content-desc='{text}'])[1]"


def tap(phone: Phone, text: str) -> None:
    phone.tap(see(phone, labelled(text)).rect.center, "s")


def texts(phone: Phone) -> list[str]:
    return re.findall(r' text="([^"]+)"', phone.source())


def app_state(phone: Phone, package: str) -> dict[str, object]:
    return phone.state()["apps"][package]  # type: ignore[index]


@pytest.fixture
def phone() -> Phone:
    return Phone("sim-1", permission_popup=False)


def test_wifi_toggle_changes_state_and_shows_the_network_name(phone: Phone) -> None:
    tap(phone, "Settings")
    tap(phone, "Network & internet")
    assert "Connected to Lab-5G" not in texts(phone)
    tap(phone, "Wi-Fi")
    assert app_state(phone, SETTINGS)["wifi"] is True
    assert "Connected to Lab-5G" in texts(phone)


def test_wifi_says_connecting_for_as_many_reads_as_the_fault_wants(phone: Phone) -> None:
    phone.faults = phone.faults.changed({"connect_reads": 2})
    phone.launch(SETTINGS)
    tap(phone, "Network & internet")
    tap(phone, "Wi-Fi")
    assert ["Connecting…" in texts(phone) for _ in range(3)] == [True, True, False]


def test_a_list_leaves_out_what_is_not_in_view_and_clips_what_is_half_in_view(phone: Phone) -> None:
    phone.launch(SETTINGS)
    area = see(phone, "//*[@scrollable='true']").rect
    assert not find(phone.snapshot(), Locator("xpath", labelled("About phone")), SETTINGS)
    for view in phone.snapshot().views.values():
        assert view.rect.clip(Rect(0, 0, 540, 1200)) == view.rect
        assert not view.rect.empty
    last = max(phone.snapshot().views.values(), key=lambda view: (view.rect.bottom, len(view.path)))
    assert last.rect.bottom == area.bottom
    assert last.node is not None
    assert last.node.frame.bottom > area.bottom


def test_swiping_up_scrolls_by_the_way_of_the_finger_and_stops_at_the_end(phone: Phone) -> None:
    phone.launch(SETTINGS)
    before = see(phone, labelled("Battery")).rect.top
    assert phone.swipe(Point(270, 900), Point(270, 800), "s") == 100
    assert see(phone, labelled("Battery")).rect.top == before - 100
    for _ in range(10):
        phone.swipe(Point(270, 1000), Point(270, 300), "s")
    assert see(phone, labelled("About phone")).rect.bottom <= 1200
    assert phone.swipe(Point(270, 1000), Point(270, 300), "s") == 0
    assert phone.acts.since()[-1].scrolled == 0


def test_the_keyboard_covers_the_save_button_takes_the_tap_and_is_not_in_the_source(phone: Phone) -> None:
    phone.launch(CONTACTS)
    tap(phone, "Create contact")
    assert phone.keyboard_shown
    assert "keyboard_view" not in phone.source()
    assert "keyboard_view" in phone.source(all_windows=True)
    phone.write("Ada B", "s")
    tap(phone, "Save")
    hit = phone.acts.since()[-1].hit
    assert hit is not None
    assert hit.package == "com.android.inputmethod.latin"
    assert phone.state()["page"] == "form"
    phone.key(4, "s")
    tap(phone, "Save")
    saved = app_state(phone, CONTACTS)["contacts"]
    assert isinstance(saved, list)
    assert len(saved) == 3


def test_keys_on_the_picture_type_into_the_field_that_has_the_cursor(phone: Phone) -> None:
    phone.launch(CONTACTS)
    tap(phone, "Create contact")
    for letter in "hi":
        key = f"//android.inputmethodservice.Key[@text='{letter}']"
        found = find(phone.snapshot(all_windows=True), Locator("xpath", key), CONTACTS)
        phone.tap(found[0].rect.center, "s")
    assert see(phone, "//*[@focused='true']").element.get("text", "") == "hi"


def test_an_empty_field_shows_its_hint_and_says_so(phone: Phone) -> None:
    phone.launch(CONTACTS)
    tap(phone, "Create contact")
    name = see(phone, "//*[@hint='Name']")
    assert (name.element.get("text", ""), name.element.get("showing-hint", "")) == ("Name", "true")
    phone.set_text(name, "Zoë ☎ +@$#&;", "s", replace=False)
    name = see(phone, "//*[@hint='Name']")
    assert (name.element.get("text", ""), name.element.get("showing-hint", "")) == ("Zoë ☎ +@$#&;", "false")
    phone.set_text(name, "!", "s", replace=False)
    assert see(phone, "//*[@hint='Name']").element.get("text", "") == "Zoë ☎ +@$#&;!"


def test_leaving_a_changed_form_asks_first_and_a_tap_beside_the_dialog_keeps_the_draft(phone: Phone) -> None:
    phone.launch(CONTACTS)
    tap(phone, "Create contact")
    phone.write("x", "s")
    tap(phone, "Navigate up")
    assert phone.state()["page"] == "unsaved"
    assert "Save" not in texts(phone)
    phone.tap(Point(270, 1150), "s")
    assert phone.state()["page"] == "form"
    tap(phone, "Navigate up")
    tap(phone, "Discard")
    assert (phone.state()["page"], app_state(phone, CONTACTS)["draft"]) == ("home", {})


def test_contacts_asks_for_its_permission_once(phone: Phone) -> None:
    phone.permission_popup = True
    phone.launch(CONTACTS)
    assert phone.package == "com.android.permissioncontroller"
    phone.key(4, "s")
    tap(phone, "Allow")
    phone.terminate(CONTACTS, "s")
    phone.launch(CONTACTS)
    assert phone.state()["page"] == "home"


def test_a_password_is_dots_in_tree_and_act_log(phone: Phone) -> None:
    phone.patch({SETTINGS: {"wifi": True}})
    phone.launch(SETTINGS)
    tap(phone, "Network & internet")
    tap(phone, "Wi-Fi networks")
    tap(phone, "Lab-Guest")
    phone.set_text(see(phone, "//*[@password='true']"), "guest-pass", "s", replace=True)
    assert "guest-pass" not in phone.source()
    assert "guest-pass" not in str(phone.acts.since())
    tap(phone, "Connect")
    assert app_state(phone, SETTINGS)["wifi_network"] == "Lab-Guest"


def test_a_right_to_left_screen_has_the_switch_left_of_its_label(phone: Phone) -> None:
    phone.launch(TASKS)
    label, knob = see(phone, labelled("شراء الخبز")).rect, see(phone, "//android.widget.Switch[@checked='false']").rect
    assert knob.right < label.right
    tap(phone, "شراء الخبز")
    assert app_state(phone, TASKS)["done"] == {"شراء الخبز": True, "الاتصال بالطبيب": True}


def test_terminated_apps_lose_their_pages_and_keep_their_state(phone: Phone) -> None:
    phone.launch(SETTINGS)
    tap(phone, "Network & internet")
    tap(phone, "Wi-Fi")
    assert phone.app_state(SETTINGS) == 4
    phone.key(3, "s")
    assert phone.app_state(SETTINGS) == 3
    assert phone.terminate(SETTINGS, "s") is True
    assert (phone.app_state(SETTINGS), phone.terminate(SETTINGS, "s")) == (1, False)
    phone.activate(SETTINGS, "s")
    assert phone.state()["page"] == "home"
    assert app_state(phone, SETTINGS)["wifi"] is True


def test_an_app_that_is_not_there_cannot_be_started_and_is_no_act(phone: Phone) -> None:
    with pytest.raises(UnknownError, match=r"launchable activity of 'no\.such'"):
        phone.activate("no.such", "s")
    assert phone.acts.since() == []


def test_attributes_come_in_the_order_of_the_real_server(phone: Phone) -> None:
    phone.launch(CONTACTS)
    tap(phone, "Create contact")
    found = re.search(r"<android.widget.EditText ([^>]*)/>", phone.source())
    assert found is not None
    names = re.findall(r'([\w-]+)="', found.group(1))
    assert names == [name for name in NAMES if name in names]
    assert {"hint", "showing-hint", "bounds", "input-type", "max-text-length"} <= set(names)


def test_text_for_a_label_is_refused(phone: Phone) -> None:
    with pytest.raises(InvalidElementState):
        phone.set_text(see(phone, "//android.widget.TextClock"), "x", "s", replace=True)


def test_the_act_log_counts_on_through_a_reset(phone: Phone) -> None:
    tap(phone, "Settings")
    phone.tap(Point(1, 1190), "s2")
    assert [(act.n, act.session) for act in phone.acts.since()] == [(1, "s"), (2, "s2")]
    phone.reset()
    phone.key(4, "s")
    assert [act.n for act in phone.acts.since()] == [3]


def test_turning_the_phone_turns_tree_and_picture(phone: Phone) -> None:
    phone.launch(SETTINGS)
    phone.rotate(True, "s")
    assert '<hierarchy index="0" class="hierarchy" rotation="1" width="1200" height="540">' in phone.source()
    assert Image.open(io.BytesIO(phone.picture())).size == (1200, 540)


def test_the_picture_shows_a_button_where_the_tree_says_it_is() -> None:
    phone = Phone("sim-1", width=360, height=800)
    phone.launch(CONTACTS)
    rect = see(phone, labelled("Allow")).rect
    image = Image.open(io.BytesIO(phone.picture())).convert("RGB")
    inside = (rect.left + 20, rect.center.y)
    assert image.getpixel(inside) != image.getpixel((rect.left - 4, rect.center.y))
    assert image.getpixel(inside) == image.getpixel((rect.right - 20, rect.center.y))


def test_a_changed_state_must_name_known_apps_and_fields(phone: Phone) -> None:
    with pytest.raises(InvalidArgument, match="no app"):
        phone.patch({"no.such": {}})
    with pytest.raises(InvalidArgument, match="bluetooth"):
        phone.patch({SETTINGS: {"blutooth": True}})
    with pytest.raises(InvalidArgument, match="wifi"):
        phone.patch({SETTINGS: {"wifi": "perhaps"}})


@dataclass
class CounterState:
    taps: int = 0
    holds: int = 0


class Counter(App[CounterState]):
    package: ClassVar[str] = "org.example.counter"
    label: ClassVar[str] = "Counter"

    def fresh(self) -> CounterState:
        return CounterState()

    def home(self) -> Window:
        return page(item("Both", self.count, on_long=self.hold), item("Tap only", self.count))

    def count(self) -> None:
        self.state.taps += 1

    def hold(self) -> None:
        self.state.holds += 1


def test_a_long_press_on_a_widget_that_knows_none_is_a_tap() -> None:
    phone = Phone("sim-1", apps=(Launcher, Counter))
    tap(phone, "Counter")
    phone.long_press(see(phone, labelled("Both")).rect.center, "s")
    phone.long_press(see(phone, labelled("Tap only")).rect.center, "s")
    assert app_state(phone, "org.example.counter")["holds"] == 1
    assert app_state(phone, "org.example.counter")["taps"] == 1


def test_two_hundred_phones_fit_into_one_process_and_share_nothing() -> None:
    tracemalloc.start()
    try:
        phones = [Phone(f"sim-{n}", platform="ios" if n % 4 == 0 else "android") for n in range(200)]
        for phone in phones[::2]:
            phone.launch("com.apple.Preferences" if phone.platform == "iOS" else SETTINGS)
        assert all(phone.source() for phone in phones[::5])
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 40 * 2**20
    assert len({phone.package for phone in phones[1::2]}) == 1
    assert [phone.state()["page"] for phone in phones[:4]] == ["home"] * 4
    fronts = [str(phone.state()["foreground"]) for phone in phones]
    assert [fronts.count(app) for app in ("com.apple.Preferences", SETTINGS)] == [50, 50]
