"""What is said of typed text; what passes the gate before each request; how long a state has been seen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.remote.command import Command

from apex_executor import session as session_module
from apex_executor.connection import Gate, is_appium, touches
from apex_executor.errors import ActCutShort, ActRefused
from apex_executor.fields import compared
from apex_executor.outcomes import Outcome
from apex_executor.session import PhoneSession
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.watch import _REMEMBERED, FirstSights
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point

TAP = Tap(at=Point(x=1, y=1))


@pytest.mark.parametrize(
    ("typed", "shown", "password", "success", "code"),
    [
        ("Zoë 日本 😀", "Zoë 日本 😀", False, True, None),
        ("", "", False, True, None),
        ("abc", "Abc", False, False, "TEXT_DIFFERS"),
        ("abc", "", False, False, "TEXT_DIFFERS"),
        ("", "left over", False, False, "TEXT_DIFFERS"),
        ("abc", None, False, True, "UNREADABLE"),
        ("abc", "•••", False, True, None),
        ("abc", "••••••••", True, True, None),
        ("abc", "", True, False, "TEXT_DIFFERS"),
        ("", "•••", True, False, "TEXT_DIFFERS"),
        ("", "", True, True, None),
        ("abc", None, True, True, "UNREADABLE"),
        ("***", "***", False, True, None),
        ("", "•••", False, False, "TEXT_DIFFERS"),
    ],
)
def test_typed_text_is_told_as_the_field_shows_it(
    typed: str, shown: str | None, password: bool, success: bool, code: str | None
) -> None:
    outcome = compared(typed, shown, password=password)
    assert (outcome.success, outcome.code) == (success, code)


@given(typed=st.text(min_size=3), shown=st.none() | st.text(min_size=3))
def test_outcome_for_a_password_field_repeats_neither_side(typed: str, shown: str | None) -> None:
    said = repr(compared(typed + "\x00secret", None if shown is None else shown + "\x01hidden", password=True))
    assert "secret" not in said
    assert "\\x01hidden" not in said


@given(typed=st.text(), shown=st.text())
def test_text_that_differs_is_never_told_as_done_unless_the_field_hides_it(typed: str, shown: str) -> None:
    outcome = compared(typed, shown, password=False)
    hidden = shown != "" and set(shown) <= {"•", "*", "●"}
    if outcome.success:
        assert shown == typed or (hidden and typed)
    assert len(outcome.message or "") < 2_000


@pytest.mark.parametrize(
    ("command", "params", "expected"),
    [
        (Command.W3C_ACTIONS, {}, True),
        (Command.CLEAR_ELEMENT, {}, True),
        (Command.SEND_KEYS_TO_ELEMENT, {}, True),
        (Command.GO_BACK, {}, True),
        ("anything new", {}, True),
        (Command.W3C_EXECUTE_SCRIPT, {"script": "mobile: activateApp"}, True),
        (Command.W3C_EXECUTE_SCRIPT, {"script": "mobile: isAppInstalled"}, False),
        (Command.W3C_EXECUTE_SCRIPT, {"script": "mobile: queryAppState"}, False),
        (Command.W3C_EXECUTE_SCRIPT, {"script": "return devicePixelRatio"}, False),
        (Command.FIND_ELEMENTS, {}, False),
        (Command.GET_ELEMENT_RECT, {}, False),
        (Command.W3C_GET_ACTIVE_ELEMENT, {}, False),
    ],
)
def test_only_known_lookups_count_as_not_touching(command: str, params: dict[str, Any], expected: bool) -> None:
    assert touches(command, params) is expected


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        ({"value": None}, True),
        ({"value": "<xml/>"}, True),
        ({"sessionId": "s", "status": 0, "value": "old protocol"}, True),
        ({"status": 404, "value": '{"value": {"error": "no such element"}}'}, True),
        ({"status": 500, "value": '{"value": {"error": ""}}'}, False),
        ({"status": 502, "value": "<html>"}, False),
        ({"status": 502, "value": '"a"'}, False),
        ({"status": 502, "value": "[]"}, False),
        ({"status": 0, "value": "<html>"}, False),
        ({"status": 401, "value": "Authorization Required"}, False),
        ({"status": 500, "value": None}, False),
    ],
)
def test_what_does_not_speak_the_protocol_is_no_answer(answer: dict[str, Any], good: bool) -> None:
    assert is_appium(answer) is good


async def performed(
    monkeypatch: pytest.MonkeyPatch, requests: Any, *, act_seconds: float = 5.0, held: Any = None
) -> Outcome:
    """Perform an act that passes the gate as `requests` does: a function of the gate."""
    session = PhoneSession(DeviceConfig(alias="a", url="http://a"), ExecutorSettings(act_seconds=act_seconds))
    gates: list[Gate | None] = []
    monkeypatch.setattr(session._phone, "guard", gates.append)

    def act(*_: Any, **__: Any) -> Outcome:
        gate = gates[-1]
        assert gate is not None
        requests(gate)
        return Outcome(success=True)

    monkeypatch.setattr(session_module, "perform", act)
    try:
        return await session.perform(TAP, None, held=held or (lambda: True))
    finally:
        assert gates[-1] is None, "the gate stayed shut behind the act"
        session.shut()


async def test_act_within_its_deadline_and_lease_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def requests(gate: Gate) -> None:
        gate(False)
        gate(True)
        gate(True)

    assert (await performed(monkeypatch, requests)).success


@pytest.mark.parametrize("lookups", [0, 3])
async def test_act_whose_lease_lapses_before_the_first_touch_is_refused(
    monkeypatch: pytest.MonkeyPatch, lookups: int
) -> None:
    left = lookups

    def held() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    def requests(gate: Gate) -> None:
        for _ in range(lookups):
            gate(False)
        gate(True)
        pytest.fail("a request was sent without the lease")

    with pytest.raises(ActRefused, match="NOT_BEGUN"):
        await performed(monkeypatch, requests, held=held)


async def test_act_whose_deadline_is_over_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ActRefused, match="NOT_BEGUN"):
        await performed(monkeypatch, lambda gate: gate(True), act_seconds=-1.0)


@pytest.mark.parametrize(
    ("requested", "error"),
    [
        ((False, False), WebDriverException),
        ((False, True), WebDriverException),
        ((True, False), ActCutShort),
        ((True, True), ActCutShort),
    ],
)
async def test_error_is_told_as_a_part_done_once_a_touch_came_before(
    monkeypatch: pytest.MonkeyPatch, requested: tuple[bool, bool], error: type[Exception]
) -> None:
    def requests(gate: Gate) -> None:
        for each in requested:
            gate(each)
        raise WebDriverException("m")

    with pytest.raises(error) as caught:
        await performed(monkeypatch, requests)
    assert type(caught.value) is error


async def test_act_that_is_held_back_in_its_middle_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = iter([True, False])

    def requests(gate: Gate) -> None:
        gate(True)
        gate(True)

    with pytest.raises(ActCutShort) as caught:
        await performed(monkeypatch, requests, held=lambda: next(allowed))
    assert isinstance(caught.value.cause, ActRefused)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_waiting_is_counted_from_the_first_sight_of_a_state() -> None:
    clock = Clock()
    sights = FirstSights(clock)
    assert sights.waited_s("t", ("scene", 1)) == 0
    clock.now += 5
    assert sights.waited_s("t", ("scene", 1)) == 5
    assert sights.waited_s("u", ("scene", 1)) == 0
    clock.now += 5
    assert sights.waited_s("t", ("planned", 1)) == 0
    assert sights.waited_s("u", ("scene", 1)) == 5


@pytest.mark.parametrize("forgetting", [FirstSights.start_again, lambda sights: sights.forget("t")])
def test_what_was_forgotten_is_seen_for_the_first_time_again(forgetting: Any) -> None:
    clock = Clock()
    sights = FirstSights(clock)
    sights.waited_s("t", 1)
    clock.now += 50
    forgetting(sights)
    assert sights.waited_s("t", 1) == 0


def test_memory_of_sights_is_bounded_and_drops_the_longest_unasked() -> None:
    clock = Clock()
    sights = FirstSights(clock)
    for number in range(_REMEMBERED):
        sights.waited_s(str(number), 1)
    clock.now += 7
    sights.waited_s("0", 1)
    sights.waited_s("one more", 1)
    assert len(sights._seen) == _REMEMBERED
    assert sights.waited_s("0", 1) == 7
    assert sights.waited_s("1", 1) == 0
