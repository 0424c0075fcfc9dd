"""The slots of the task log: places that are written once, their subjects and the fences of writing them.

Consumes and emits subjects `task.<device>.<task>.<turn>.<kind>`; owns what a fence of each kind is.
"""

from typing import Final, Literal

from apex_schemas.errors import SubjectMismatch
from apex_schemas.ids import NO_DEVICE, is_device, is_task_id
from apex_schemas.structs import Wire

Kind = Literal["started", "scene", "planned", "acting", "event", "finished"]
KINDS: Final[tuple[Kind, ...]] = ("started", "scene", "planned", "acting", "event", "finished")
END: Final = "end"
_KIND_BY_NAME: Final[dict[str, Kind]] = {kind: kind for kind in KINDS}


class Slot(Wire, frozen=True, kw_only=True):
    """A place in the task log that is written once. `turn` is None for `finished`, whose subject says `end`."""

    device: str
    task: str
    kind: Kind
    turn: int | None = None

    @property
    def subject(self) -> str:
        turn = END if self.turn is None else self.turn
        return f"task.{self.device}.{self.task}.{turn}.{self.kind}"

    def fence(self) -> str:
        """The one fence string of this kind: replicated leaders compare writes in flight by it, literally."""
        match self.kind:
            case "started":
                return f"task.*.{self.task}.>"
            case "planned" | "acting":
                return f"task.{self.device}.{self.task}.>"
            case "finished":
                return f"task.{'*' if self.device == NO_DEVICE else self.device}.{self.task}.>"
            case "scene" | "event":
                return self.subject

    def sibling(self, kind: Kind, *, later: int = 0) -> "Slot":
        """Another slot of the same task, `later` turns on; `finished` has no turn."""
        turn = None if kind == "finished" else (self.turn or 0) + later
        return Slot(device=self.device, task=self.task, kind=kind, turn=turn)


def started(device: str, task: str) -> Slot:
    return Slot(device=device, task=task, kind="started", turn=0)


def finished(device: str, task: str) -> Slot:
    return Slot(device=device, task=task, kind="finished")


def parse_slot(subject: str) -> Slot:
    """The slot that a subject names. Raises SubjectMismatch for anything that is not a slot of the table."""
    tokens = subject.split(".")
    if len(tokens) == 5 and tokens[0] == "task":
        _, device, task, turn, kind = tokens
        known = _KIND_BY_NAME.get(kind)
        ended = known == "finished" and turn == END
        numbered = known not in (None, "finished") and turn.isascii() and turn.isdigit() and str(int(turn)) == turn
        device_fits = is_device(device) or (device == NO_DEVICE and ended)
        if known is not None and (ended or numbered) and device_fits and is_task_id(task):
            return Slot(device=device, task=task, kind=known, turn=None if ended else int(turn))
    raise SubjectMismatch(subject, "no slot of the task log")
