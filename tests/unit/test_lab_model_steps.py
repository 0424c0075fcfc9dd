"""Goals that spell out their steps, and `look around N turns`."""

import pytest

from apex_lab.model.playbooks.step import parse_steps
from apex_lab.model.reply import Ask, Reply, reply
from apex_lab.model.tools import Tool

TOOLS = {
    name: Tool(name=name, schema={"type": "object", "properties": {key: {} for key in keys}, "required": []})
    for name, keys in {
        "tap": ["element"],
        "swipe": ["x1", "y1", "x2", "y2"],
        "input_text": ["element", "text"],
        "launch_app": ["app"],
        "finish_task": ["success", "reason", "evidence"],
    }.items()
}
SCREEN = """<screen app="org.shop" page="{page}" size="1000x2000">
e1 row "Display, dark theme, font size"
e2 row "Brightness level"
e3 field empty hint="Search"
e4 switch "Night light" off
e5 button "Delete all"
</screen>"""


def ask(goal: str, *history: str, page: str = "Top", screen: str = SCREEN) -> Reply:
    lines = [f"{number}. {line}" for number, line in enumerate(history, start=1)]
    return reply(Ask(text="\n".join([f"Goal: {goal}", "History:", *lines, screen.format(page=page)]), tools=TOOLS))


def call(said: Reply) -> tuple[str, dict[str, object]]:
    assert said.call is not None
    return said.call.name, said.call.arguments


def turn(said: Reply, *, page: str = "Top", success: str = "true") -> str:
    return f"{page} | {call(said)[0]} | {said.text} | success: {success}"


@pytest.mark.parametrize(
    ("goal", "steps"),
    [
        ('tap "Display" then tap "Brightness"', [("tap", "Display"), ("tap", "Brightness")]),
        ("open Settings, tap Display and then scroll down", [("open", "Settings"), ("tap", "Display"), ("scroll", "")]),
        ('type "a, then tap b" into "Name" then tap "Save, now"', [("type", "a, then tap b"), ("tap", "Save, now")]),
        ("launch com.example.app; close the app Maps", [("launch", "com.example.app"), ("close", "Maps")]),
        ('Tap the "OK" button and check that "Done" is shown.', [("tap", "OK"), ("check", "Done")]),
    ],
)
def test_a_goal_is_read_as_its_steps(goal: str, steps: list[tuple[str, str]]) -> None:
    assert [(step.verb, step.what) for step in parse_steps(goal)] == steps


@pytest.mark.parametrize("goal", ["order a pizza", 'tap "A" then be happy, tap "B"', "", "turn on Wi-Fi"])
def test_a_goal_that_is_not_understood_in_all_its_parts_has_no_steps(goal: str) -> None:
    assert parse_steps(goal) == ()


def test_steps_are_done_in_order_and_the_history_says_how_far_they_are() -> None:
    goal = 'tap "Display" then type "Zoë" into "Search" then tap "Brightness"'
    first = ask(goal)
    second = ask(goal, turn(first))
    third = ask(goal, turn(first), turn(second))
    last = ask(goal, turn(first), turn(second), turn(third))

    assert call(first) == ("tap", {"element": "e1"})
    assert call(second) == ("input_text", {"element": "e3", "text": "Zoë"})
    assert call(third) == ("tap", {"element": "e2"})
    assert call(last)[1]["success"] is True


def test_without_rationales_the_tools_used_are_counted() -> None:
    goal = 'tap "Display" then tap "Brightness"'

    assert call(ask(goal, 'Top | tap "Display" | - | success: true')) == ("tap", {"element": "e2"})
    assert call(ask(goal, *['Top | tap "x" | - | success: true'] * 2))[0] == "finish_task"


def test_a_failed_step_is_tried_three_times_and_then_the_task_ends_false() -> None:
    goal = 'tap "Display"'
    failed = turn(ask(goal), success="false")

    assert call(ask(goal, failed, failed))[0] == "tap"
    assert call(ask(goal, failed, failed, failed))[1]["success"] is False


def test_a_step_of_unknown_outcome_is_repeated_only_when_the_screen_did_not_move_on() -> None:
    goal = 'tap "Display"'
    unknown = turn(ask(goal), success="unknown")

    assert call(ask(goal, unknown))[0] == "tap"
    assert call(ask(goal, unknown, page="Display"))[1]["success"] is True


def test_a_target_out_of_sight_is_looked_for_down_and_up_before_giving_up() -> None:
    history: list[str] = []
    seen: list[tuple[str, dict[str, object]]] = []
    for _ in range(6):
        said = ask('tap "Fridge"', *history)
        seen.append(call(said))
        if seen[-1][0] == "finish_task":
            break
        history.append(turn(said))

    downward = [given["y1"] > given["y2"] for name, given in seen[:-1] if name == "swipe"]  # type: ignore[operator]
    assert downward == [True, False]
    assert seen[-1][1]["success"] is False


def test_from_a_page_without_the_target_the_way_leads_back_before_giving_up() -> None:
    screen = '<screen app="a" page="Sub" size="1x1">\ne1 button "Navigate up"\n</screen>'
    history: list[str] = []
    for _ in range(3):
        history.append(turn(ask('tap "Fridge"', *history, screen=screen)))

    assert [line.split(" | ")[1] for line in history] == ["swipe", "swipe", "tap"]


def test_an_act_that_fails_without_end_is_given_up_even_without_rationales() -> None:
    failed = 'Top | tap "Display" | - | success: false'

    assert call(ask('tap "Display"', failed, failed))[0] == "tap"
    assert call(ask('tap "Display"', failed, failed, failed))[1]["success"] is False


def test_a_field_is_found_by_its_hint_when_its_label_says_something_else() -> None:
    screen = '<screen app="a" page="p" size="1x1">\ne1 field "New task" empty hint="Title"\n</screen>'

    assert call(ask('type "milk" into "Title"', screen=screen))[1]["element"] == "e1"


def test_a_check_needs_no_act_and_fails_when_its_text_is_not_there() -> None:
    assert call(ask('check "Night light"'))[1]["success"] is True
    done = turn(ask('tap "Display" then check "Night light"'))
    assert call(ask('tap "Display" then check "Night light"', done))[1]["success"] is True
    assert call(ask('check "Fridge"'))[0] == "swipe"


def test_an_app_already_in_front_is_not_opened_again() -> None:
    assert call(ask('open shop then tap "Display"')) == ("tap", {"element": "e1"})


def test_above_a_keyboard_swipes_stay_in_the_upper_half() -> None:
    said = ask("scroll down", screen=SCREEN.replace('size="1000x2000"', 'size="1000x2000" keyboard="shown"'))

    assert call(said)[1]["y1"] == 900


def test_look_around_does_harmless_things_for_exactly_the_turns_asked_for() -> None:
    history: list[str] = []
    touched: set[object] = set()
    for _ in range(8):
        said = ask("look around 7 turns", *history)
        name, given = call(said)
        touched.add(given.get("element"))
        if name == "finish_task":
            break
        history.append(turn(said))

    assert len(history) == 7
    assert touched <= {None, "e1", "e2"}
    assert {"e1", "e2"} <= touched


def test_look_around_counts_turns_that_a_long_history_leaves_out() -> None:
    history = "1. a | tap | - | success: true\n(38 turns left out)\n40. a | tap | - | success: true"
    text = f"Goal: look around 40 turns\nHistory:\n{history}\n{SCREEN}"

    assert call(reply(Ask(text=text, tools=TOOLS)))[0] == "finish_task"
