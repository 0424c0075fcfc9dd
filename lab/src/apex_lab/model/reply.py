"""One answer of the scripted model, before any provider's wire format: text, thinking, and at most one tool call.

Consumes an `Ask` (the last user message's text and the tools); emits a `Reply`. Pure and without memory.
"""

from msgspec import Struct

from apex_lab.model.errors import PromptUnreadable
from apex_lab.model.moves import Finish, Move, finish
from apex_lab.model.playbook import choose, play
from apex_lab.model.playbooks import PLAYBOOKS
from apex_lab.model.prompt import Prompt, parse_prompt
from apex_lab.model.tools import Tool, ToolCall, fill_call, tool_for, write_call

MARK = "[scripted]"
"""How every text of this model begins."""


class Ask(Struct, frozen=True, kw_only=True):
    """What a request asks. `forced` is None (free), "" (any tool) or a tool's name."""

    text: str
    tools: dict[str, Tool]
    forced: str | None = None


class Reply(Struct, frozen=True, kw_only=True):
    """`playbook` names the script that was played ("none" when there was no goal)."""

    playbook: str
    text: str
    thinking: str
    call: ToolCall | None = None


def reply(ask: Ask) -> Reply:
    """The answer to a request. The same request always gets the same answer."""
    try:
        prompt = parse_prompt(ask.text)
    except PromptUnreadable as unreadable:
        return _without_goal(ask, unreadable)
    book, situation = choose(prompt, PLAYBOOKS)
    move = play(book, situation)
    tool = tool_for(move.act, ask.tools)
    if tool is None and not isinstance(move.act, Finish):
        move = finish(False, f"there is no tool to {move.intent}")
        tool = tool_for(move.act, ask.tools)
    text = f"{MARK} {_judgement(prompt)} Next: {move.intent}."
    return Reply(
        playbook=book.name, text=text, thinking=_thoughts(prompt, book.name, move), call=_call(ask, move, tool)
    )  # fmt: skip


def _call(ask: Ask, move: Move, tool: Tool | None) -> ToolCall | None:
    if ask.forced and (tool is None or tool.name != ask.forced):
        return fill_call(ask.tools[ask.forced])
    return write_call(move, tool) if tool is not None else None


def _without_goal(ask: Ask, unreadable: PromptUnreadable) -> Reply:
    call = None
    if ask.forced is not None and ask.tools:
        call = fill_call(ask.tools[ask.forced] if ask.forced else next(iter(ask.tools.values())))
    text = f"{MARK} I only play scripts, and there is nothing to play here: {unreadable}."
    return Reply(playbook="none", text=text, thinking=f"{MARK} No goal in this message.", call=call)


def _judgement(prompt: Prompt) -> str:
    page = (prompt.screen.page or prompt.screen.app or "no named page")[:40]
    if not prompt.history:
        return f'First look: the screen shows "{page}".'
    last = prompt.history[-1]
    match last.success:
        case True:
            return f'The last step worked; the screen now shows "{page}".'
        case False:
            return f'The last step failed; the screen shows "{page}".'
        case None:
            return f'Whether the last step worked is not known; the screen shows "{page}".'


def _thoughts(prompt: Prompt, book: str, move: Move) -> str:
    seen = [f"{line.role} {line.label!r}" for line in prompt.screen.elements if line.id is not None and line.label][:5]
    return (
        f"{MARK} The goal is {prompt.goal!r}; I play the script {book!r}. {len(prompt.history)} turns are behind me. "
        f"Among what I see: {', '.join(seen) or 'nothing with a name'}. The next thing is to {move.intent}."
    )
