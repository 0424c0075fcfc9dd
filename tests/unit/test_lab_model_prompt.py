"""Reading a prompt as a model would: goal, history and screen from the text of one user message."""

import pytest

from apex_lab.model.errors import PromptUnreadable
from apex_lab.model.labels import fit, likeness
from apex_lab.model.prompt import parse_prompt
from apex_lab.model.screen import Element, parse_screen

WHOLE = """Goal: turn on Wi-Fi
History:
1. Home | tap "Settings" | [scripted] Next: open Settings | by its icon. | success: true
2. Settings | swipe up | - | success: unknown
(20 turns left out)
23. Settings | tap "Wi-Fi" | It did not move. | success: false
Last step: purpose x; expected y; did tap; outcome failed STALE_SCENE
Turn: 24 of 30
<screen app="com.android.settings" page="Settings > Network" size="1080x2400" keyboard="shown">
e1 button "Navigate up"
e2 list scrolls
  e3 switch "Wi-Fi, \\"fast\\"" off
  text "Goal: buy a car"
  e4 field ="Zoë" focused
e5 field empty hint="Phone"
(12 more not listed)
</screen>
Your last answer could not be used: no call."""


def element(line: str) -> Element:
    return parse_screen('<screen app="a" page="p">', [line]).elements[0]


def test_goal_history_and_screen_are_read_from_one_message() -> None:
    prompt = parse_prompt(WHOLE)

    assert prompt.goal == "turn on Wi-Fi"
    assert [(turn.number, turn.tool, turn.success) for turn in prompt.history] == [
        (1, "tap", True),
        (2, "swipe", None),
        (23, "tap", False),
    ]
    assert prompt.history[0].rationale == "[scripted] Next: open Settings | by its icon."
    assert prompt.history[1].rationale == ""
    assert "STALE_SCENE" in prompt.last_step
    assert (prompt.screen.app, prompt.screen.page) == ("com.android.settings", "Settings > Network")
    assert (prompt.screen.size, prompt.screen.omitted, prompt.screen.keyboard) == ((1080, 2400), 12, True)


def test_what_the_screen_says_is_never_taken_for_the_goal() -> None:
    only_on_screen = WHOLE.replace("Goal: turn on Wi-Fi\n", "")

    with pytest.raises(PromptUnreadable):
        parse_prompt(only_on_screen)


def test_element_lines_give_id_role_label_value_and_state() -> None:
    by_id = {line.id: line for line in parse_prompt(WHOLE).screen.elements}

    assert by_id["e3"].label == 'Wi-Fi, "fast"'
    assert by_id["e3"].checked is False
    assert by_id["e3"].depth > by_id["e2"].depth
    assert by_id["e4"].value == "Zoë"
    assert by_id["e4"].is_field
    assert by_id["e5"].caption == "Phone"
    assert by_id[None].label == "Goal: buy a car"


@pytest.mark.parametrize(
    ("line", "checked"),
    [
        ('e1 switch "A" on', True),
        ('e1 switch "A" off', False),
        ('e1 checkbox "A" checked=true', True),
        ('e1 checkbox "A" checked=false', False),
        ('e1 button "on"', None),
    ],
)
def test_a_state_is_read_from_words_and_never_from_the_label(line: str, checked: bool | None) -> None:
    assert element(line).checked is checked


@pytest.mark.parametrize("state", ["disabled", "covered", "off-screen"])
def test_what_cannot_be_reached_is_not_usable(state: str) -> None:
    assert element('e1 button "Save"').usable
    assert not element(f'e1 button "Save" {state}').usable


def test_a_switch_without_a_label_goes_by_its_row_or_the_text_before_it() -> None:
    nested = parse_screen("<screen>", ['e1 row "Wi-Fi"', "  e2 switch off"]).elements
    beside = parse_screen("<screen>", ['text "Wi-Fi"', "e2 switch off"]).elements

    assert nested[1].caption == "Wi-Fi"
    assert beside[1].caption == "Wi-Fi"


def test_a_list_without_a_label_takes_no_name_from_the_title_before_it() -> None:
    assert parse_screen("<screen>", ['text "Settings"', "e2 list scrolls"]).elements[1].caption == ""


@pytest.mark.parametrize("line", ["", "   ", "???", "e1", 'e1 "no role', 'e1 button "x" ="', '="" \\', "\x00"])
def test_lines_that_make_no_sense_are_survived(line: str) -> None:
    screen = parse_screen("<screen page=>", [line, 'e9 button "OK"'])

    assert screen.elements[-1].label == "OK"


@pytest.mark.parametrize("label", ["Wi-Fi", "WiFi", "wi fi", "Wi‑Fi", "WLAN", "Wi-Fi, Off", "Use Wi-Fi"])
def test_a_thing_is_found_under_each_of_its_names(label: str) -> None:
    assert fit("Wi-Fi", label) >= 0.9


def test_the_same_words_fit_better_than_more_words_and_other_words_do_not_fit() -> None:
    scores = [
        likeness("Display", label) for label in ("Display", "Display, dark", "Display size", "My display", "Apps")
    ]

    assert scores == sorted(scores, reverse=True)
    assert scores[-1] == 0
    assert len(set(scores)) == len(scores)
