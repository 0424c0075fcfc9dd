"""The confirm policy: acts that a person has to allow before the phone is touched.

Consumes a planned step and the operator's answer on `approve.<task>.<turn>`; emits whether the act may be done. Which
acts are held back is a matter of patterns and of nothing else: no model is asked. Nothing is kept in memory: the wait
counts from the step's own age, so that a new driver goes on with it.
"""

import asyncio
import fnmatch
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from apex_bus.connection import Bus
from apex_bus.errors import SettingsError
from apex_bus.tasklog import Entry, TaskLog
from apex_executor.settings import ExecutorSettings
from apex_schemas import subjects
from apex_schemas.actions import Back, Home, InputText, LaunchApp, TerminateApp, Wait, tool_name
from apex_schemas.steps import PlannedStep
from apex_schemas.task import Approval

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
_FREE: Final = (Wait, Back, Home)
"""Waiting and leaving are never held back."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An act that needs approval. `package` (a glob such as `com.bank.*`) is held against the app on the screen and
    the app that is opened or closed; `text` (a regular expression, whatever the case) against the words of the act:
    its target's, what is typed, the page, the purpose. Where both stand, both must match."""

    package: str | None = None
    text: str | None = None

    def holds(self, step: PlannedStep) -> bool:
        if self.package is not None and not any(fnmatch.fnmatchcase(app, self.package) for app in _apps(step)):
            return False
        return self.text is None or any(re.search(self.text, words, re.IGNORECASE) for words in _words(step))


class Allowed(NamedTuple):
    """The act may be done. `waited`: the answer came after a wait, and counts as a fresh decision."""

    waited: bool = False


class Denied(NamedTuple):
    message: str


class Ended(NamedTuple):
    """The task was ended while its act waited."""


class Display(Protocol):
    """Where it is shown that an act waits: the device record."""

    async def waits(self, turn: int | None, reason: str | None) -> None:
        """The turn whose act waits, and for what; None when none does any more."""
        ...


def policy_of(settings: ExecutorSettings) -> tuple[Pattern, ...]:
    """The patterns of EXECUTOR_CONFIRM and of the file EXECUTOR_CONFIRM_FILE. Raises SettingsError."""
    patterns = _patterns("EXECUTOR_CONFIRM", settings.confirm.encode())
    if settings.confirm_file:
        try:
            data = Path(settings.confirm_file).read_bytes()
        except OSError as error:
            reason = f"{settings.confirm_file} cannot be read: {error.strerror}"
            raise SettingsError("EXECUTOR_CONFIRM_FILE", reason) from error
        patterns += _patterns("EXECUTOR_CONFIRM_FILE", data)
    return patterns


def needs_approval(step: PlannedStep, policy: Sequence[Pattern]) -> bool:
    return not isinstance(step.action, _FREE) and any(pattern.holds(step) for pattern in policy)


def bare_point(step: PlannedStep) -> bool:
    """Whether the act goes to a place and names nothing there that could be looked for again after a long wait."""
    return step.target is None and not isinstance(step.action, LaunchApp | TerminateApp)


class Approvals:
    """The wait for the operator's answer."""

    def __init__(self, bus: Bus, tasklog: TaskLog, display: Display, settings: ExecutorSettings) -> None:
        self._bus, self._log, self._display = bus, tasklog, display
        self._policy, self._seconds = policy_of(settings), settings.confirm_seconds
        self.waiting = False

    async def settle(self, planned: Entry, step: PlannedStep, age_s: float) -> Allowed | Denied | Ended:
        """Whether the act of a step, planned `age_s` ago, may be done. Without a pattern that matches it may, at
        once; and one that has been begun has been allowed."""
        slot = planned.slot
        if not needs_approval(step, self._policy) or await self._log.read(slot.sibling("acting")) is not None:
            return Allowed()
        turn = slot.turn or 0
        log.info("turn %d of task %s waits for approval", turn, slot.task)
        self.waiting = True
        try:
            await self._display.waits(turn, f"{_act(step)} waits for approval: apex approve {slot.task}")
            answer = await self._answer(planned, self._seconds - age_s)
            await self._display.waits(None, None)
        finally:
            self.waiting = False
        return answer

    async def _answer(self, planned: Entry, seconds: float) -> Allowed | Denied | Ended:
        slot = planned.slot
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        subject = subjects.approve(slot.task, slot.turn or 0)
        unreadable: int | None = None
        while True:
            if await self._log.ended(slot.task, device=slot.device) is not None:
                return Ended()
            stored = await self._bus.get("REQUESTS", subject)
            approval = _read(stored.data) if stored is not None else None
            if approval is not None:
                by = approval.by[:100] or "the operator"
                return Allowed(waited=True) if approval.approved else Denied(f"{by} did not allow it; nothing was done")
            if stored is not None and stored.sequence != unreadable:
                unreadable = stored.sequence
                log.warning("the answer on %s cannot be read and is ignored; send it again", subject)
            if loop.time() >= deadline:
                return Denied(f"nobody allowed it within {self._seconds:g} s; nothing was done")
            await asyncio.sleep(min(_LOOK_S, max(0.01, deadline - loop.time())))


def _patterns(variable: str, data: bytes) -> tuple[Pattern, ...]:
    try:
        found = msgspec.json.decode(data or b"[]", type=tuple[Pattern, ...])
        for pattern in found:
            if not pattern.package and not pattern.text:
                raise SettingsError(variable, "has a pattern without package and text, which would hold back all acts")
            re.compile(pattern.text or "")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SettingsError(variable, f'is not a list of patterns such as [{{"text": "send"}}]: {error}') from None
    except re.error as error:
        raise SettingsError(variable, f"has a text that is no regular expression: {error}") from None
    return found


def _apps(step: PlannedStep) -> list[str]:
    named = [step.action.app] if isinstance(step.action, LaunchApp | TerminateApp) else []
    return [app for app in (step.app, *named) if app]


def _words(step: PlannedStep) -> list[str]:
    target = step.target
    words = [step.page, step.purpose, *_apps(step)]
    if target is not None:
        words += [target.label, target.text, target.description, target.resource_id]
    if isinstance(step.action, InputText):
        words.append(step.action.text)
    return [each for each in words if each]


def _act(step: PlannedStep) -> str:
    """The act in words; what is typed is left out, since it may be a secret."""
    named = step.target.label[:60] if step.target is not None else ", ".join(_apps(step)[-1:])
    return f"{tool_name(step.action)} {named}".strip()


def _read(data: bytes) -> Approval | None:
    try:
        decode = msgspec.json.decode if data[:1] == b"{" else msgspec.msgpack.decode
        return decode(data, type=Approval)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
