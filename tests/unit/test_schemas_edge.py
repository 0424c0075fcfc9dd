"""Task requests of strangers: every kind of bad input has its own sentence, in JSON and msgpack alike."""

import contextlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_schemas.edge import MAX_REQUEST_BYTES, decode_request, digest, is_blank, task_of
from apex_schemas.errors import TooLarge, Undecodable, UnknownFields, WireError
from apex_schemas.ids import derived_task_id, is_task_id
from apex_schemas.task import TaskRequest

TASK = "4bf92f3577b34da6a3ce929d0e0e4736"
Write = Callable[[Any], bytes]
FORMS = pytest.mark.parametrize("write", [msgspec.json.encode, msgspec.msgpack.encode], ids=["json", "msgpack"])
NAN, INFINITY = float("nan"), float("inf")


def raw(text: str) -> bytes:
    return b'{"goal": "g", ' + text.encode() + b"}"


@FORMS
def test_request_is_read_with_all_its_fields_or_the_goal_alone(write: Write) -> None:
    assert decode_request(write({"goal": "turn on Wi-Fi"})) == TaskRequest(goal="turn on Wi-Fi")
    full = TaskRequest(goal="日本語 🙂", task=TASK, max_turns=200, timeout_s=5, not_after=1.5)
    assert decode_request(write(full)) == full


def test_json_is_read_with_blanks_and_a_byte_order_mark_before_it() -> None:
    for prefix in (b"\xef\xbb\xbf", b" \r\n\t", b"\xef\xbb\xbf\n"):
        assert decode_request(prefix + b'{"goal": "g"}\n') == TaskRequest(goal="g")


@FORMS
def test_field_that_means_nothing_is_refused_by_name(write: Write) -> None:
    with pytest.raises(UnknownFields, match="unknown field gaol, Max_turns; known are goal, task, max_turns") as error:
        decode_request(write({"goal": "g", "gaol": 1, "Max_turns": 2}))
    assert error.value.names == ["gaol", "Max_turns"]


@FORMS
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"goal": ""},
        {"goal": "x" * 4_001},
        {"goal": None},
        {"goal": 7},
        {"goal": ["g"]},
        {"goal": "g", "task": "1"},
        {"goal": "g", "task": TASK.upper()},
        {"goal": "g", "task": f"{TASK}\n"},
        {"goal": "g", "task": "0" * 32},
        {"goal": "g", "task": ">"},
        {"goal": "g", "max_turns": 0},
        {"goal": "g", "max_turns": 201},
        {"goal": "g", "max_turns": -1},
        {"goal": "g", "max_turns": 2**63},
        {"goal": "g", "max_turns": "12"},
        {"goal": "g", "max_turns": 1.5},
        {"goal": "g", "timeout_s": 4},
        {"goal": "g", "timeout_s": 86_401},
        {"goal": "g", "timeout_s": None},
        {"goal": "g", "not_after": -1},
        {"goal": "g", "not_after": 1e12},
        {"goal": "g", "not_after": "tomorrow"},
    ],
    ids=str,
)
def test_value_that_is_not_allowed_is_refused(write: Write, fields: dict[str, Any]) -> None:
    with pytest.raises(Undecodable, match=r"the task request cannot be read: ."):
        decode_request(write(fields))


@pytest.mark.parametrize("number", [NAN, INFINITY, -INFINITY])
def test_number_that_is_not_finite_is_refused(number: float) -> None:
    for field in ("not_after", "timeout_s", "max_turns"):
        with pytest.raises(Undecodable):
            decode_request(msgspec.msgpack.encode({"goal": "g", field: number}))
        with pytest.raises(Undecodable):
            decode_request(json.dumps({"goal": "g", field: number}).encode())


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 5_000, "0." + "0" * 5_000 + "1e5100", "1e-999"])
def test_number_of_absurd_size_is_refused_or_read_as_what_it_is(number: str) -> None:
    for field in ("not_after", "max_turns"):
        try:
            request = decode_request(raw(f'"{field}": {number}'))
        except Undecodable:
            continue
        assert (request.not_after or 0) <= 1e11


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}x", b'{"goal": "g"}{"goal": "h"}', b"null", b"7", b"[]", b'"g"', b"\xff"]
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(Undecodable):
        decode_request(data)


@FORMS
def test_empty_goal_is_refused_in_words(write: Write) -> None:
    with pytest.raises(Undecodable, match="its goal is blank; say what is to be done"):
        decode_request(write({"goal": ""}))


@pytest.mark.parametrize(
    ("goal", "blank"),
    [("", True), (" \n\t\u00a0", True), ("\u200b\u2060\ufeff", True), ("x", False), ("شغّل", False), ("🙂", False)],
)
def test_goal_of_white_space_and_invisible_marks_says_nothing(goal: str, blank: bool) -> None:
    assert is_blank(goal) is blank


@FORMS
@pytest.mark.parametrize("value", [None, 7, "g", ["goal"], True])
def test_value_that_is_no_object_is_refused(write: Write, value: Any) -> None:
    with pytest.raises(Undecodable):
        decode_request(write(value))


@pytest.mark.parametrize(
    "data",
    [
        b'{"goal": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"x":' * 10_000 + b"1" + b"}" * 10_000,
        b"\x91" * 10_000 + b"\xc0",
        b"\x81\xa1x" * 10_000 + b"\xc0",
        b"\x81" * 10_000 + b"\xc0",
    ],
    ids=["JSON lists", "JSON objects", "msgpack lists", "msgpack maps", "msgpack maps as keys"],
)
def test_nesting_ten_thousand_deep_is_refused_and_not_followed(data: bytes) -> None:
    with pytest.raises(Undecodable):
        decode_request(data)


@FORMS
def test_request_of_seventy_kilobytes_is_refused_by_its_size(write: Write) -> None:
    with pytest.raises(TooLarge, match=r"the task request has 7\d,\d{3} bytes, more than the 65,536 allowed") as error:
        decode_request(write({"goal": "x" * 70_000}))
    assert error.value.limit == MAX_REQUEST_BYTES


@pytest.mark.parametrize(
    "data",
    [
        b'{"goal": "\xff\xfe"}',
        b'{"goal": "\xed\xa0\x80"}',
        b'{"goal": "\\ud800"}',
        b'{"goal": "a\nb"}',
        b"{'goal': 'g'}",
        b'{"goal": "g",}',
        b"\x81\xa4goal\xa2\xff\xfe",
        b"\x81\xa4goal\xc4\x01g",
        b"\x82\xa4goal\xa1g",
        b"\x81\xa4goal\xdb\xff\xff\xff\xffg",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\x01\xa1g",
        b"\xc7\x01\x05g",
        '{"goal": "g"}'.encode("utf-16"),
    ],
)
def test_bytes_that_are_broken_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_request(data)


def test_field_that_is_there_twice_is_read_by_its_last_value() -> None:
    assert decode_request(b'{"goal": "first", "goal": "last"}').goal == "last"


@FORMS
@pytest.mark.parametrize(
    "wrong",
    [{"goal": " "}, {"goal": "g", "gaol": 1}, {"goal": "g", "max_turns": 0}, {"goal": 7}, {"goal": "g" * 9_999}],
)
def test_malformed_request_still_has_the_id_that_it_names(write: Write, wrong: dict[str, Any]) -> None:
    assert task_of(write({**wrong, "task": TASK}), timestamp_ns=1, sequence=2) == TASK


@pytest.mark.parametrize(
    "data",
    [b"", b'{"goal": "g"}', b'{"task": "no id"}', b'{"task": 7}', b'{"task": "%s"' % TASK.encode(), b"\xdf\xff", b"[]"],
)
def test_request_that_names_no_id_to_be_read_has_the_one_of_its_place(data: bytes) -> None:
    assert task_of(data, timestamp_ns=1, sequence=2) == derived_task_id(1, 2)


@given(st.binary(max_size=200))
def test_any_bytes_have_an_id(data: bytes) -> None:
    assert is_task_id(task_of(data, timestamp_ns=1, sequence=2))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_wire_error(data: bytes) -> None:
    with contextlib.suppress(WireError):
        assert decode_request(data).goal


@given(st.text(min_size=1, max_size=200), st.integers(1, 200))
def test_digest_is_that_of_the_request_however_it_is_written(goal: str, turns: int) -> None:
    fields = {"goal": goal, "max_turns": turns}
    written = [msgspec.json.encode(fields), msgspec.msgpack.encode(fields), json.dumps(fields, indent=3).encode()]
    written.append(msgspec.json.encode(dict(reversed(fields.items()))))
    assert len({digest(data) for data in written}) == 1
    assert digest(msgspec.json.encode({**fields, "goal": f"{goal}."[:4_000]})) != digest(written[0])


def test_digest_stays_as_it_is_when_a_version_knows_more_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request met again by an executor of the next version is no other request."""

    class Next(TaskRequest, frozen=True, kw_only=True):
        an_addition: tuple[str, ...] = ()
        mode: str = "as before"
        among: list[str] = msgspec.field(default_factory=list)

    data = msgspec.json.encode({"goal": "g", "max_turns": 7})
    before = digest(data)
    monkeypatch.setattr("apex_schemas.edge.TaskRequest", Next)
    assert digest(data) == before
    assert digest(msgspec.json.encode({"goal": "g", "max_turns": 7, "mode": "another"})) != before
