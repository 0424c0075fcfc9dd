"""What goes wrong on phones, one at a time: each ends as the list of page sources and places says (rows 24 to 31), and
reaches the model as a code. The phone's true state is the judge of what was done.
"""

import pytest
from integration.appium_phone import labelled, target_of
from integration.sim_phone import OpenSim, SimPhone
from msgspec import structs
from selenium.common.exceptions import WebDriverException
from urllib3.exceptions import HTTPError

from apex_executor.errors import ActCutShort, ActRefused, DeviceFailed
from apex_executor.failures import classify
from apex_executor.outcomes import Failure
from apex_schemas.actions import DeviceAction, InputText, LaunchApp, Scroll, Swipe, Tap, TerminateApp
from apex_schemas.devices import Platform
from apex_schemas.geometry import Point
from apex_schemas.steps import Target

pytest_plugins = ("integration.sim_phone",)

BOTH: list[Platform] = ["android", "ios"]


async def failure_of(
    phone: SimPhone, action: DeviceAction, target: Target | None = None
) -> Failure | ActRefused | None:
    """How an act fails: refused, or by what its error proves; None when it does not."""
    try:
        await phone.act(action, target)
    except ActRefused as refused:
        return refused
    except (WebDriverException, HTTPError, ActCutShort) as error:
        return classify(error)
    return None


async def new_contact(open_sim: OpenSim, platform: Platform, **faults: object) -> SimPhone:
    """A phone on the form for a new contact, whose fields show hints."""
    phone = await open_sim(platform)
    assert (await phone.act(LaunchApp(app="Contacts"))).success
    await phone.tap("Create contact")
    await phone.faults(**faults)
    return phone


# 24: after a scroll an old handle points to another row


@pytest.mark.parametrize("platform", BOTH)
async def test_row_that_has_scrolled_since_the_look_is_followed_or_refused_and_no_other_is_hit(
    open_sim: OpenSim, platform: Platform
) -> None:
    phone = await open_sim(platform)
    await phone.act(LaunchApp(app="Settings"))
    battery = labelled(await phone.scene(), "Battery")
    await phone.act(Scroll(direction="down"))
    before = len(await phone.acts())
    assert battery.tap_point is not None
    refused = await failure_of(phone, Tap(at=battery.tap_point), target_of(battery))
    hit = [each for each in await phone.acts() if each["n"] > before]
    if refused is None:
        assert "Battery" in (await phone.truth())["page"], hit
    else:
        assert isinstance(refused, ActRefused)
        assert refused.code in ("STALE_SCENE", "OFF_SCREEN", "OCCLUDED")
        assert hit == []


# 25: whose movement a swipe and a scroll are


@pytest.mark.parametrize("platform", BOTH)
async def test_swipe_is_the_fingers_and_scroll_the_contents(open_sim: OpenSim, platform: Platform) -> None:
    phone = await open_sim(platform)
    await phone.act(LaunchApp(app="Settings"))
    top = await phone.scene()
    size = top.screen.size
    await phone.act(Scroll(direction="down"))
    further = await phone.scene()
    assert further.fingerprint != top.fingerprint
    assert not [each for each in further.elements if each.label.startswith("Network") and each.tap_point]
    middle, low = Point(x=size.width // 2, y=size.height // 4), Point(x=size.width // 2, y=size.height * 9 // 10)
    for _ in range(2):
        await phone.act(Swipe(start=middle, end=low))
    assert (await phone.scene()).fingerprint == top.fingerprint


# 26: scrolled, and nothing moved


async def test_scroll_that_moved_nothing_leaves_the_fingerprint_as_it_was(open_sim: OpenSim) -> None:
    phone = await open_sim(faults={"stuck_scroll": True})
    await phone.act(LaunchApp(app="Settings"))
    before = await phone.scene()
    assert (await phone.act(Scroll(direction="down"))).success is True
    assert (await phone.scene()).fingerprint == before.fingerprint


# 27, 28: what becomes of typed text


@pytest.mark.parametrize("platform", BOTH)
@pytest.mark.parametrize("text", ["Zoë 日本 😀👩‍👩‍👧", "+@$#&;", "", "two  spaces"])
async def test_any_text_replaces_what_was_there_and_a_hint_is_none(
    open_sim: OpenSim, platform: Platform, text: str
) -> None:
    phone = await new_contact(open_sim, platform)
    for typed in ("before", text):
        field = await phone.field("Name")
        assert field.tap_point is not None
        outcome = await phone.act(InputText(text=typed, at=field.tap_point), target_of(field))
        assert (outcome.success, outcome.code) == (True, None), outcome.message
    assert ((await phone.field("Name")).value or "") == text


@pytest.mark.parametrize("platform", BOTH)
@pytest.mark.parametrize(
    ("fault", "typed", "shown"),
    [("appended", "new", "oldnew"), ("truncated", "a+b@c", "a"), ("ascii_dropped", "Zoë", "Zo"), ("nothing", "x", "")],
)
async def test_text_that_came_out_otherwise_is_told_with_both_values(
    open_sim: OpenSim, platform: Platform, fault: str, typed: str, shown: str
) -> None:
    phone = await new_contact(open_sim, platform)
    field = await phone.field("Name")
    assert field.tap_point is not None
    await phone.act(InputText(text="old", at=field.tap_point), target_of(field))
    await phone.faults(typing=fault)
    outcome = await phone.act(InputText(text=typed, at=field.tap_point), target_of(field))
    assert (outcome.success, outcome.code) == (False, "TEXT_DIFFERS")
    assert f"{shown!r} instead of {typed!r}" in (outcome.message or "")


async def test_letters_that_the_phone_does_not_take_are_told_as_not_typed(open_sim: OpenSim) -> None:
    phone = await new_contact(open_sim, "android", typing="ascii_only")
    field = await phone.field("Name")
    failure = await failure_of(phone, InputText(text="Zoë", at=field.tap_point), target_of(field))
    assert isinstance(failure, Failure)
    assert (failure.code, failure.acted) == ("TEXT_REFUSED", False)


async def test_input_method_that_an_earlier_run_left_is_taken_away(open_sim: OpenSim) -> None:
    phone = await open_sim(faults={"ime_left": True})
    await phone.act(LaunchApp(app="Contacts"))
    await phone.tap("Create contact")
    await phone.tap_on(await phone.field("Name"))
    assert (await phone.truth())["keyboard_shown"] is True


# 29: apps that do not start


@pytest.mark.parametrize("fault", ["not_exported", "no_activity"])
async def test_app_that_cannot_be_opened_from_outside_is_refused(open_sim: OpenSim, fault: str) -> None:
    phone = await open_sim(faults={"launch": fault})
    refused = await failure_of(phone, LaunchApp(app="Settings"))
    assert isinstance(refused, ActRefused)
    assert refused.code == "NOT_LAUNCHABLE"
    assert "launcher" in (await phone.truth())["foreground"]


@pytest.mark.parametrize("platform", BOTH)
async def test_app_that_is_not_there_is_refused_and_one_that_does_not_come_is_told(
    open_sim: OpenSim, platform: Platform
) -> None:
    phone = await open_sim(platform, faults={"launch": "nothing"})
    for action in (LaunchApp(app="com.example.absent"), LaunchApp(app="No Such App"), TerminateApp(app="Nothing")):
        refused = await failure_of(phone, action)
        assert isinstance(refused, ActRefused)
        assert refused.code == "APP_NOT_INSTALLED"
    outcome = await phone.act(LaunchApp(app="Settings"))
    assert (outcome.success, outcome.code) == (False, "NOT_LAUNCHABLE")


@pytest.mark.parametrize("platform", BOTH)
async def test_popup_at_the_start_of_an_app_is_the_next_scene(open_sim: OpenSim, platform: Platform) -> None:
    phone = await open_sim(platform, state={"permission_popup": True})
    outcome = await phone.act(LaunchApp(app="Contacts"))
    assert outcome.success is True, outcome.message
    assert labelled(await phone.scene(), "Allow").tap_point is not None


# Something comes up between the look and the act


@pytest.mark.parametrize("platform", BOTH)
async def test_what_lies_under_a_dialog_that_came_up_since_is_not_touched(
    open_sim: OpenSim, platform: Platform
) -> None:
    phone = await open_sim(platform)
    await phone.act(LaunchApp(app="Settings"))
    seen = await phone.scene()
    battery = labelled(seen, "Battery")
    assert battery.tap_point is not None
    await phone.faults(popup=True)
    await phone.act(Scroll(direction="up"))  # it comes before this one reaches the screen
    target = structs.replace(target_of(battery), app=seen.app)
    refused = await failure_of(phone, Tap(at=battery.tap_point), target)
    assert isinstance(refused, ActRefused)
    assert refused.code == "OCCLUDED"


# 30: sessions


async def test_session_that_is_over_as_soon_as_it_is_made_is_made_once_more(open_sim: OpenSim) -> None:
    phone = await open_sim(faults={"stillborn": 1})
    assert (await phone.act(LaunchApp(app="Settings"))).success
    with pytest.raises(DeviceFailed, match="a session was made and does not answer"):
        await open_sim(faults={"stillborn": 2})


@pytest.mark.parametrize("death", ["instrumentation", "socket_hang_up"])
async def test_driver_that_dies_in_an_act_leaves_it_unknown_and_a_new_session_works(
    open_sim: OpenSim, death: str
) -> None:
    phone = await open_sim()
    await phone.faults(driver_death=death)
    failure = await failure_of(phone, Tap(at=Point(x=5, y=500)))
    assert isinstance(failure, Failure)
    assert (failure.code, failure.acted, failure.session_dead) == ("UNKNOWN_OUTCOME", None, True)
    assert await phone.acts() == []
    await phone.session.end()
    await phone.session.open()
    assert (await phone.act(LaunchApp(app="Settings"))).success


# 31: two devices on one port


async def test_devices_that_are_given_the_same_port_by_hand_say_so_and_allotted_ones_never_meet(
    open_sim: OpenSim,
) -> None:
    same = {"appium:systemPort": 8_200, "appium:wdaLocalPort": 8_200}
    await open_sim("android", capabilities=same)
    with pytest.raises(DeviceFailed, match=r"port.* 8200|8200 .* already in use|#8200"):
        await open_sim("ios", capabilities=same)
    await open_sim("ios")
