"""Playbooks on a phone made of paper: pages as prompt text, taps as page turns, history as the planner writes it."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from apex_lab.model.reply import Ask, reply
from apex_lab.model.tools import Tool


def tool(name: str, *optional: str, **required: str) -> Tool:
    properties = {key: {"type": kind} for key, kind in required.items()} | {key: {"type": "string"} for key in optional}
    reasons = [] if name == "finish_task" else ["purpose", "expected_outcome"]
    properties |= {key: {"type": "string"} for key in reasons}
    return Tool(name=name, schema={"type": "object", "properties": properties, "required": [*required, *reasons]})


TOOLS = {
    each.name: each
    for each in (
        tool("tap", "element", "x", "y"),
        tool("swipe", x1="integer", y1="integer", x2="integer", y2="integer"),
        tool("input_text", "element", text="string"),
        tool("launch_app", app="string"),
        tool("terminate_app", app="string"),
        tool("finish_task", "answer", "evidence", success="boolean", reason="string"),
    )
}
Lines = list[tuple[str, str]]  # what follows the id, and the key that a tap on it gives


@dataclass
class PaperPhone:
    """Wi-Fi and contacts by hand. `renamed` changes labels, `seed` shuffles lines, `hidden` removes them."""

    renamed: dict[str, str] = field(default_factory=dict[str, str])
    hidden: frozenset[str] = frozenset()
    seed: int | None = None
    page: str = "home"
    wifi: bool = False
    asks: bool = True
    offset: int = 0
    popup: bool = False
    tall: bool = False
    draft: dict[str, str] = field(default_factory=dict[str, str])
    saved: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    keys: list[str] = field(default_factory=list[str])

    def lines(self) -> tuple[str, str, Lines]:
        if self.popup:
            return "android", "Battery is low", [('button "No thanks"', "popup"), ('button "Turn on"', "bad")]
        match self.page:
            case "home":
                return (
                    "com.android.launcher3",
                    "Home",
                    [('icon "Contacts"', "contacts"), ('icon "Settings"', "settings")],
                )
            case "settings":
                far = [(f'row "Place {number}"', "nowhere") for number in range(20)]
                rows: Lines = [*far, ('row "Network & internet"', "network"), ('row "Display"', "nowhere")]
                return "com.android.settings", "Settings", rows[self.offset : self.offset + 8]
            case "network":
                state = "on" if self.wifi else "off"
                shown = [
                    ('row "Wi-Fi calling"', "bad"),
                    (f'switch "Wi-Fi" {state}', "wifi"),
                    ('button "Navigate up"', "up"),
                ]
                return (
                    "com.android.settings",
                    "Network",
                    [*shown, *([('text "Connected to Café"', "")] if self.wifi else [])],
                )
            case "permission":
                return (
                    "com.android.permissioncontroller",
                    "Allow?",
                    [('button "Don\'t allow"', "bad"), ('button "Allow"', "allow")],
                )
            case "form":
                return "com.android.contacts", "Create contact", self._form()
            case _:
                known: Lines = [(f'row "{each["Name"]}, {each["Phone"]}"', "nowhere") for each in self.saved]
                return "com.android.contacts", "Contacts", [*known, ('button "Create contact"', "form")]

    def _form(self) -> Lines:
        fields: Lines = []
        for hint in ("Name", "Phone"):
            value = self.draft.get(hint)
            fields.append((f"field ={json.dumps(value)}" if value else f'field empty hint="{hint}"', hint))
        able = "" if self.draft.get("Name") else " disabled"
        whole: Lines = [*fields, (f'button "Save"{able}', "save"), ('button "Close"', "bad")]
        return whole[self.offset : self.offset + 1] if self.tall else whole

    def text(self) -> str:
        app, page, lines = self.lines()
        lines = [line for line in lines if not any(word in line[0] for word in self.hidden)]
        if self.seed is not None:
            random.Random(f"{self.seed}{page}").shuffle(lines)
        self.keys = [key for _, key in lines]
        out: list[str] = []
        for number, (words, key) in enumerate(lines):
            for old, new in self.renamed.items():
                words = words.replace(f'"{old}"', f'"{new}"')
            out.append(f"e{number} {words}" if key else words)
        return "\n".join([f'<screen app="{app}" page="{page}" size="1080x2400">', *out, "</screen>"])

    def act(self, name: str, given: dict[str, Any]) -> tuple[str, bool]:
        match name:
            case "tap":
                key = self.keys[int(given["element"][1:])]
                assert key != "bad", f"{given} must never be touched"
                self._tap(key)
                return f'tap "{key}"', True
            case "swipe":
                step, end = (1, 3) if self.page == "form" else (5, 14)
                self.offset = max(0, min(end, self.offset + (step if given["y1"] > given["y2"] else -step)))
                return "swipe", True
            case "input_text":
                self.draft[self.keys[int(given["element"][1:])]] = given["text"]
                return f"input_text {json.dumps(given['text'], ensure_ascii=False)}", True
            case _:
                here = {"com.android.settings": "settings", "com.android.contacts": "contacts"}.get(given["app"])
                self.page = here or self.page
                return f'launch_app "{given["app"]}"', here is not None

    def _tap(self, key: str) -> None:
        match key:
            case "popup":
                self.popup = False
            case "wifi":
                self.wifi = not self.wifi
            case "allow":
                self.page, self.asks = "contacts", False
            case "contacts":
                self.page = "permission" if self.asks else "contacts"
            case "save":
                self.saved.append({"Phone": "", **self.draft})
                self.draft, self.page = {}, "contacts"
            case "up":
                self.page = "settings"
            case "nowhere":
                pass
            case _:
                self.page, self.offset = key, 0


def play(
    phone: PaperPhone, goal: str, *, before: Callable[[int], None] = lambda _: None, silent: bool = False
) -> dict[str, Any]:
    """Turns until finish_task; its arguments, and the number of turns under "turns"."""
    history: list[str] = []
    for turn in range(1, 41):
        before(turn)
        page = phone.lines()[1]
        said = reply(Ask(text="\n".join([f"Goal: {goal}", "History:", *history, phone.text()]), tools=TOOLS))
        assert said.text.startswith("[scripted]")
        assert said.call is not None
        if said.call.name == "finish_task":
            return {**said.call.arguments, "turns": turn}
        assert said.call.arguments["purpose"]
        assert said.call.arguments["expected_outcome"]
        action, worked = phone.act(said.call.name, dict(said.call.arguments))
        rationale = "-" if silent else said.text[:240].replace("|", "/")
        history.append(f"{turn}. {page} | {action} | {rationale} | success: {str(worked).lower()}")
    pytest.fail(f"no end after 40 turns: {history[-3:]}")


WIFI = "turn on Wi-Fi and report the network name"


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("start", ["home", "settings", "network", "contacts"])
def test_wifi_is_turned_on_and_the_network_reported_from_any_page(start: str, silent: bool) -> None:
    phone = PaperPhone(page=start)

    end = play(phone, WIFI, silent=silent)

    assert (end["success"], end["answer"], phone.wifi) == (True, "Café", True)


def test_wifi_that_is_on_already_is_not_touched() -> None:
    phone = PaperPhone(page="network", wifi=True)

    assert play(phone, "Please turn on the Wi-Fi.")["turns"] == 1
    assert phone.wifi


@pytest.mark.parametrize(
    "goal", ["switch Wi-Fi off", "turn off wifi", "disable WLAN", "open settings and turn off the Wi-Fi"]
)
def test_wifi_is_turned_off_however_the_goal_says_it(goal: str) -> None:
    phone = PaperPhone(wifi=True)

    assert play(phone, goal)["success"] is True
    assert not phone.wifi


@pytest.mark.parametrize("seed", range(6))
def test_relabelled_and_shuffled_screens_do_not_stop_a_playbook(seed: int) -> None:
    names = {"Wi-Fi": "WLAN", "Network & internet": "Connections", "Settings": "System settings", "Contacts": "People",
             "Create contact": "Add contact", "Save": "Done"}  # fmt: skip
    phone = PaperPhone(seed=seed, renamed=names)

    assert play(phone, WIFI)["answer"] == "Café"
    assert play(phone, 'create a contact named "Zoë"')["success"] is True
    assert phone.saved == [{"Name": "Zoë", "Phone": ""}]


@pytest.mark.parametrize("gone", ['switch "Wi-Fi"', "Network & internet"])
def test_without_the_target_the_task_ends_false_with_a_reason(gone: str) -> None:
    phone = PaperPhone(hidden=frozenset({gone}))

    end = play(phone, WIFI)

    assert end["success"] is False
    assert "Wi-Fi" in end["reason"]


@pytest.mark.parametrize(
    ("goal", "name", "phone_number"),
    [
        ("create a contact named Zoë Müller-Łukasiewicz", "Zoë Müller-Łukasiewicz", ""),
        ('Create a new contact called "王小明" with phone number +49 30 1234', "王小明", "+49 30 1234"),
        ("open contacts and add a contact named أحمد and phone 555", "أحمد", "555"),
        ("add a contact for Max und Moritz with the phone 0049-30, then save it.", "Max und Moritz", "0049-30"),
    ],
)
def test_a_contact_is_created_through_permission_question_and_form(goal: str, name: str, phone_number: str) -> None:
    phone = PaperPhone()

    end = play(phone, goal)

    assert end["success"] is True
    assert phone.saved == [{"Name": name, "Phone": phone_number}]


@pytest.mark.parametrize("silent", [False, True])
def test_a_form_that_shows_one_thing_at_a_time_is_scrolled_and_filled(silent: bool) -> None:
    phone = PaperPhone(page="contacts", tall=True)

    end = play(phone, "create a contact named Zoë with phone 555", silent=silent)

    assert end["success"] is True
    assert phone.saved == [{"Name": "Zoë", "Phone": "555"}]


def test_a_switch_is_found_behind_the_entry_whose_summary_names_it() -> None:
    names = {"Network & internet": "Radio stuff, Wi-Fi, Bluetooth"}

    assert play(PaperPhone(renamed=names), WIFI)["success"] is True


def test_a_form_without_a_save_button_ends_false_and_nothing_is_closed() -> None:
    phone = PaperPhone(hidden=frozenset({'"Save"'}))

    assert play(phone, "create a contact named Zoë")["success"] is False
    assert phone.saved == []


@pytest.mark.parametrize("turn", range(1, 6))
def test_a_popup_in_any_turn_is_closed_by_the_button_that_changes_nothing(turn: int) -> None:
    phone = PaperPhone()

    def disturb(now: int) -> None:
        phone.popup = phone.popup or now == turn

    assert play(phone, "create a contact named Zoë", before=disturb)["success"] is True
    assert len(phone.saved) == 1


@pytest.mark.parametrize(
    "goal", ["open the fridge", "order a pizza", "make me happy", "turn on the oven", 'tap "Fridge"']
)
def test_a_goal_that_nothing_on_the_phone_serves_ends_false_after_a_look_round(goal: str) -> None:
    phone = PaperPhone()

    end = play(phone, goal)

    assert end["success"] is False
    assert end["reason"]
    assert 1 < end["turns"] <= 30
    assert (phone.wifi, phone.saved) == (False, [])


def test_the_same_request_always_gets_the_same_answer() -> None:
    ask = Ask(text=f"Goal: {WIFI}\n{PaperPhone().text()}", tools=TOOLS)

    assert reply(ask) == reply(ask)
