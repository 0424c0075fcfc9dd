"""What AIPlanner needs of a client, and what the recording client needs of a provider."""

from typing import NamedTuple, Protocol

from apex_schemas.decision import DecisionReply, DecisionRequest


class ToolCallingClient(Protocol):
    async def decide(self, request: DecisionRequest) -> DecisionReply:
        """Exactly one tool call, or why there is none. Provider failures are replies, never exceptions."""
        ...


class Answer(NamedTuple):
    """A reply with the body it was read from, for the record. `ignored` are block types that were not known."""

    reply: DecisionReply
    raw: str | None = None
    ignored: tuple[str, ...] = ()


class ProviderClient(ToolCallingClient, Protocol):
    async def ask(self, request: DecisionRequest) -> Answer: ...
