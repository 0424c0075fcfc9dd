"""Secrets: read on the phone's host, typed by name, and their values in nothing that leaves it but the act itself."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selenium.common.exceptions import WebDriverException

from apex_bus.errors import SettingsError
from apex_bus.secrets import SHORTEST, Secrets, Withheld, read_secrets
from apex_executor import decide
from apex_executor.errors import ActCutShort, ActRefused
from apex_executor.failures import classify
from apex_executor.fields import compared
from apex_executor.outcomes import Outcome
from apex_executor.secrets import revealed, told_of_failure, told_of_outcome
from apex_executor.settings import executor_settings
from apex_schemas import envelope
from apex_schemas.actions import InputText, Tap
from apex_schemas.geometry import Point
from apex_schemas.steps import PlannedStep, Target, Timings

PIN = "s3cret-PIN"


def known(value: str = PIN, **more: str) -> Secrets:
    return read_secrets(
        {"X_SECRET_PIN": value, **{f"X_SECRET_{name}": text for name, text in more.items()}}, prefix="X_"
    )


def typing(text: str, target: Target | None = None, app: str | None = "com.bank") -> PlannedStep:
    return PlannedStep(action=InputText(text=text), page="Sign in", target=target, app=app)


def act(secrets: Secrets, step: PlannedStep, *allowed: str) -> InputText:
    assert isinstance(step.action, InputText)
    action, _ = revealed(secrets, step, step.action, allowed=allowed)
    assert isinstance(action, InputText)
    return action


def test_a_name_is_replaced_for_the_phone_and_stays_in_the_step() -> None:
    step = typing("a {{secret:PIN}} and {{ secret: PIN }}")
    assert act(known(), step, "PIN").text == f"a {PIN} and {PIN}"
    assert step.action == InputText(text="a {{secret:PIN}} and {{ secret: PIN }}")


@pytest.mark.parametrize(
    ("text", "allowed", "code"),
    [
        ("{{secret:PIN}}", (), "SECRET_NOT_ALLOWED"),
        ("{{secret:PIN}}", ("OTHER",), "SECRET_NOT_ALLOWED"),
        ("{{secret:OTHER}}", ("OTHER",), "SECRET_UNKNOWN"),
        ("{{secret:PIN}} {{secret:no name}}", ("PIN",), "SECRET_UNKNOWN"),
        ("{{secret PIN}}", ("PIN",), "SECRET_UNKNOWN"),
    ],
)
def test_what_the_task_or_the_host_does_not_have_is_not_typed(text: str, allowed: tuple[str, ...], code: str) -> None:
    with pytest.raises(ActRefused) as refused:
        act(known(), typing(text), *allowed)
    assert refused.value.code == code
    assert PIN not in str(refused.value)


@pytest.mark.parametrize(("app", "typed"), [("com.bank.app", True), ("com.evil", False), (None, False)])
def test_a_secret_bound_to_apps_is_typed_into_no_other(tmp_path: Path, app: str | None, typed: bool) -> None:
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"PIN": {"value": PIN, "apps": ["com.bank*"]}}))
    secrets = read_secrets({"X_SECRETS_FILE": str(file)}, prefix="X_")
    found = secrets.reveal("{{secret:PIN}}", allowed=("PIN",), app=app)
    assert (found == PIN) is typed
    assert typed or (isinstance(found, Withheld) and found.code == "SECRET_NOT_ALLOWED")


def test_a_replaced_value_that_looks_like_a_name_is_not_replaced_again() -> None:
    secrets = known("{{secret:OTHER}}", OTHER="other value")
    assert secrets.reveal("{{secret:PIN}}", allowed=("PIN", "OTHER"), app=None) == "{{secret:OTHER}}"


def test_the_target_is_looked_for_by_what_the_phone_shows() -> None:
    target = Target(element="e1", role="button", label="Pay {{secret:PIN}}", text="Pay {{secret:PIN}}")
    step = PlannedStep(action=Tap(at=Point(x=1, y=1)), page="p", target=target)
    _, there = revealed(known(), step, Tap(at=Point(x=1, y=1)), allowed=("PIN",))
    assert there is not None
    assert there.text == f"Pay {PIN}"


@pytest.mark.parametrize(
    "data", ["[]", '{"PIN": 7}', f'{{"PIN": "{PIN}"', '{"PIN": {"value": "abcdef", "app": []}}', "\udcff"]
)
def test_a_file_that_is_none_is_refused_without_its_text(tmp_path: Path, data: str) -> None:
    file = tmp_path / "secrets.json"
    file.write_bytes(data.encode(errors="surrogateescape"))
    with pytest.raises(SettingsError, match="EXECUTOR_SECRETS_FILE") as error:
        executor_settings({"EXECUTOR_SECRETS_FILE": str(file)})
    assert PIN not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize(("name", "value"), [("PIN", "123"), ("PIN", "       1"), ("A-B", "abcdef"), ("9", "abcdef")])
def test_values_that_cannot_be_masked_and_names_that_cannot_be_written_are_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as error:
        executor_settings({f"EXECUTOR_SECRET_{name}": value})
    assert value not in str(error.value)


def test_settings_with_secrets_print_without_them() -> None:
    settings, _ = executor_settings({"EXECUTOR_SECRET_PIN": PIN})
    assert settings.secrets
    assert "PIN" in repr(settings)
    assert PIN not in repr(settings)


def test_a_missing_file_is_named_and_an_empty_one_has_no_secrets(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="EXECUTOR_SECRETS_FILE"):
        executor_settings({"EXECUTOR_SECRETS_FILE": str(tmp_path / "none")})
    (tmp_path / "empty").touch()
    assert not executor_settings({"EXECUTOR_SECRETS_FILE": str(tmp_path / "empty")})[0].secrets


def test_the_beginning_of_a_value_is_masked_where_a_text_was_cut() -> None:
    assert known().mask("Card s3cret…") == "Card {{secret:PIN}}…"
    assert known().mask("x" * 193 + " s3cret") == "x" * 193 + " {{secret:PIN}}"
    assert known().mask("Card s3cret") == "Card s3cret"


values = st.text(st.characters(codec="utf-8"), min_size=SHORTEST, max_size=60).filter(
    lambda text: len(text.strip()) >= SHORTEST and "secret" not in text.lower() and text.strip() not in BYSTANDERS
)
BYSTANDERS = (
    "the field does not hold what was typed; what the field shows is not told, since a secret was typed"
    "what the driver said is not told, since a secret was typed"
    "typed; the field hides its text"
    "Sign in"
    "input_text"
)


@settings(max_examples=300)
@given(value=values, before=st.text(max_size=200), after=st.text(max_size=20))
def test_a_value_is_in_the_act_for_the_phone_and_in_nothing_that_is_told_of_it(
    value: str, before: str, after: str
) -> None:
    secrets = known(value)
    step = typing("{{secret:PIN}}")
    assert act(secrets, step, "PIN").text == value
    action = step.action
    assert isinstance(action, InputText)
    shown = before + value + after
    driver = WebDriverException(f"cannot type {shown}")
    told = [told_of_failure(secrets, classify(error), action).message for error in (driver, ActCutShort(driver))]
    outcome = told_of_outcome(secrets, compared(value, shown, password=False), action)
    event = decide.event_of_outcome(step, outcome, session="s", timings=Timings(), now_ms=1)
    written = envelope.encode(event, task="1" * 32, device="d", turn=0, attempt="a").decode("utf-8", "replace")
    for text in (*told, outcome.message or "", written, repr(secrets)):
        assert value not in text
        assert repr(value)[1:-1] not in text


@settings(max_examples=300)
@given(value=values, before=st.text(max_size=200), after=st.text(max_size=20))
def test_a_field_that_still_shows_a_value_does_not_tell_it_when_something_else_is_typed(
    value: str, before: str, after: str
) -> None:
    secrets = known(value)
    outcome = compared("plain words", before + value + after, password=False)
    told = told_of_outcome(secrets, outcome, InputText(text="plain words")).message
    assert told is None or value not in told
    assert value not in secrets.mask(before + value + after)


def test_an_outcome_without_secrets_is_told_as_it_is() -> None:
    outcome = Outcome(success=False, code="TEXT_DIFFERS", message="the field shows 'a' instead of 'b'")
    assert told_of_outcome(known(), outcome, InputText(text="b")) == outcome
