"""Which acts the confirm policy holds back: a matter of patterns and of nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from apex_bus.errors import SettingsError
from apex_executor.approval import Pattern, bare_point, needs_approval, policy_of
from apex_executor.settings import ExecutorSettings
from apex_schemas import actions
from apex_schemas.geometry import Point
from apex_schemas.steps import PlannedStep, Target

TAP = actions.Tap(at=Point(x=1, y=2))


def step(action: actions.Action = TAP, *, label: str = "Send", **more: Any) -> PlannedStep:
    more.setdefault("target", Target(element="e1", role="button", label=label))
    more.setdefault("app", "com.bank.app")
    return PlannedStep(action=action, page="Payment > Review", **more)


def held(given: PlannedStep, *patterns: dict[str, str]) -> bool:
    return needs_approval(given, policy_of(ExecutorSettings(confirm=json.dumps(patterns))))


def test_without_a_policy_nothing_is_held_back() -> None:
    assert not held(step())


@pytest.mark.parametrize(
    ("package", "matches"), [("com.bank.app", 1), ("com.bank.*", 1), ("com.bank", 0), ("COM.*", 0)]
)
def test_a_package_is_a_glob_over_the_app_on_the_screen(package: str, matches: int) -> None:
    assert held(step(), {"package": package}) == bool(matches)


def test_opening_an_app_is_held_against_the_app_that_is_opened() -> None:
    opens = step(actions.LaunchApp(app="com.bank.app"), app="com.launcher", target=None)
    assert held(opens, {"package": "com.bank.*"})
    assert held(step(actions.TerminateApp(app="Bank"), app=None), {"text": "^bank$"})


@pytest.mark.parametrize("text", ["send", "SEND", r"\bsen[dt]\b", "review", "to pay ann", "id/confirm", "Sends money"])
def test_a_text_is_a_regular_expression_over_the_words_of_the_act(text: str) -> None:
    target = Target(
        element="e1", role="button", label="Send", resource_id="com.bank:id/confirm", description="Sends money"
    )
    assert held(step(target=target, purpose="to pay Ann"), {"text": text})
    assert not held(step(target=target, purpose="to pay Ann"), {"text": "delete"})


def test_text_that_is_typed_is_one_of_the_words() -> None:
    typed = step(actions.InputText(text="transfer 500"), label="Message")
    assert held(typed, {"text": "transfer"})


def test_where_a_pattern_has_both_both_must_match_and_one_pattern_is_enough() -> None:
    both = {"package": "com.bank.*", "text": "send"}
    assert held(step(), both)
    assert not held(step(label="Back to list"), both)
    assert not held(step(app="com.mail"), both)
    assert held(step(app="com.mail"), both, {"package": "com.mail"})


@pytest.mark.parametrize("action", [actions.Back(), actions.Home(), actions.Wait(seconds=1)])
def test_leaving_and_waiting_are_free(action: actions.Action) -> None:
    assert not held(step(action), {"package": "com.bank.*"})


def test_patterns_of_the_file_and_of_the_variable_hold_together(tmp_path: Path) -> None:
    file = tmp_path / "confirm.json"
    file.write_text('[{"text": "delete"}]')
    policy = policy_of(ExecutorSettings(confirm='[{"text": "send"}]', confirm_file=str(file)))
    assert policy == (Pattern(text="send"), Pattern(text="delete"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a list of patterns"),
        ('[{"packages": "x"}]', "packages"),
        ("[{}]", "would hold back all acts"),
        ('[{"text": ""}]', "would hold back all acts"),
        ('[{"text": "("}]', "no regular expression"),
    ],
)
def test_a_policy_that_cannot_be_meant_ends_the_process_at_start_by_the_name_of_its_variable(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="EXECUTOR_CONFIRM:") as raised:
        policy_of(ExecutorSettings(confirm=text))
    assert said in str(raised.value)
    file = tmp_path / "confirm.json"
    file.write_text(text)
    with pytest.raises(SettingsError, match="EXECUTOR_CONFIRM_FILE"):
        policy_of(ExecutorSettings(confirm_file=str(file)))


def test_a_file_that_is_not_there_is_said() -> None:
    with pytest.raises(SettingsError, match=r"EXECUTOR_CONFIRM_FILE.*nowhere\.json"):
        policy_of(ExecutorSettings(confirm_file="nowhere.json"))


def test_an_act_at_a_bare_point_cannot_be_looked_for_again_after_the_wait() -> None:
    assert bare_point(step(target=None))
    assert not bare_point(step())
    assert not bare_point(step(actions.LaunchApp(app="x"), target=None))
