"""A recorded provider call taken up again: its raw answer parsed anew, or its prompts put to another model.

Consumes DecisionRecords; emits what each comes to now beside what it came to then. Parsing is a function of the raw
answer alone, so the same code must give the same reply, to the letter; only the latency is not in the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, structs

from apex_planner.clients import anthropic_answer, chat_answer, responses_answer
from apex_planner.clients.protocol import ProviderClient
from apex_planner.clients.reading import Parts, conclude
from apex_planner.tools import BY_NAME
from apex_schemas.decision import DecisionFault, DecisionRecord, DecisionReply, DecisionRequest, ToolCallDecision

Verdict = Literal["same", "differs", "no_answer"]

_READERS: Final[Mapping[str, Sequence[Callable[[str], Parts | None]]]] = {
    "anthropic": (anthropic_answer.read,),
    "openai": (chat_answer.read, responses_answer.read),
}
_ERRORS: Final = frozenset({"unavailable", "timeout", "denied", "configuration", "too_long", "rejected_by_server"})
"""Faults that came of a status or of silence: what is recorded with them is no answer of a model."""


class Replayed(Struct, frozen=True, kw_only=True):
    """`no_answer`: the provider gave none, so there is nothing to parse. `differences` are the fields that differ.

    `pictureless`: the call had a picture, which no record holds; another model was asked without it.
    """

    turn: int
    call: int
    verdict: Verdict
    then: DecisionReply
    now: DecisionReply | None = None
    differences: tuple[str, ...] = ()
    pictureless: bool = False


def parse_again(record: DecisionRecord) -> Replayed:
    """The recorded answer, read by the code of today."""
    then = record.reply
    if record.raw_answer is None or (isinstance(then, DecisionFault) and then.code in _ERRORS):
        return Replayed(turn=record.key.turn, call=record.key.call, verdict="no_answer", then=then)
    readers = _READERS.get(then.provider, ())
    parts = next((found for read in readers if (found := read(record.raw_answer)) is not None), None)
    if parts is None:
        unread = isinstance(then, DecisionFault) and then.code == "not_a_completion"
        return _compared(record, then if unread else None, named=_named)
    now = conclude(parts, provider=then.provider, model=then.model)
    return _compared(record, structs.replace(now, latency_ms=then.latency_ms), named=_named)


async def ask_again(record: DecisionRecord, client: ProviderClient) -> Replayed:
    """The recorded prompts put to a client's model: whether it decides the same. Nothing is stored; it costs money."""
    now = (await client.ask(request_of(record))).reply
    return _compared(record, now, named=_decided)


def request_of(record: DecisionRecord) -> DecisionRequest:
    """The question of a record. Tools are of today's table; where a block of the prompt ended is not recorded."""
    return DecisionRequest(
        key=record.key,
        system_prompt=record.system_prompt,
        user_blocks=(record.user_prompt,),
        tools=tuple(BY_NAME[name].spec() for name in record.tools if name in BY_NAME),
    )


def _compared(
    record: DecisionRecord, now: DecisionReply | None, *, named: Callable[[DecisionReply], Mapping[str, bytes]]
) -> Replayed:
    then = named(record.reply)
    again: Mapping[str, bytes] = {} if now is None else named(now)
    fields = dict.fromkeys((*then, *again))
    differences = tuple(name for name in fields if then.get(name) != again.get(name))
    return Replayed(
        turn=record.key.turn,
        call=record.key.call,
        verdict="differs" if differences else "same",
        then=record.reply,
        now=now,
        differences=differences,
        pictureless=record.screenshot_sha256 is not None and named is _decided,
    )


def _named(reply: DecisionReply) -> Mapping[str, bytes]:
    """Every field, and which of the two kinds it is."""
    kind = "tool_call" if isinstance(reply, ToolCallDecision) else "fault"
    return {"type": _exactly(kind), **{name: _exactly(getattr(reply, name)) for name in reply.__struct_fields__}}


def _decided(reply: DecisionReply) -> Mapping[str, bytes]:
    """What would be done: words and usage of another model are its own."""
    match reply:
        case ToolCallDecision(tool=tool, arguments=arguments):
            return {"tool": _exactly(tool), "arguments": _exactly(arguments)}
        case DecisionFault(code=code):
            return {"fault": _exactly(code)}


def _exactly(value: Any) -> bytes:
    """What is equal to the letter: 1 is not 1.0 and not true. The order of an object's names means nothing."""
    return msgspec.json.encode(value, order="sorted")
