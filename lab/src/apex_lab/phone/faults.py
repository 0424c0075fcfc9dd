"""What goes wrong on purpose: set over HTTP, read by the phone and by the server around each command.

Faults marked *once* are used up by the next act. Posting names the faults to change; null or the default ends one.
"""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from apex_lab.phone.errors import DriverDeath, InvalidArgument
from apex_lab.phone.launching import LaunchFault


class SourceError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The page source fails: HTTP `status` with `body`, for the next `times` reads (None: until cleared)."""

    status: int = 500
    body: str = (
        '{"value": {"error": "unknown error", "message": "Timed out waiting for the root node", "stacktrace": ""}}'
    )
    times: int | None = None


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All faults of one phone.

    latency_ms     every command waits; a table of command → ms narrows it (``{"source": 500}``)
    latency_after  the wait comes after the command's effect, before its answer
    session_death  once: the session ends right before or right after the next act
    answer_lost    once: the next act is done and the connection cut without an answer
    popup          once: a system dialog appears before the next act reaches the screen
    animate        one widget moves at every read and the screen is never idle: reads wait ``waitForIdleTimeout``;
                   true moves the title, a text moves the widget of that resource id
    source_error   the page source fails
    transition_ms  a new page slides in for that long before it lies where it belongs
    slow_start_ms  a started app shows an empty first screen for that long
    connect_reads  Wi-Fi that was turned on says "Connecting…" for that many reads of the source
    relabel        renames texts, descriptions, hints and resource ids
    shuffle        seed that reorders icons and lists
    stuck_scroll   swipes arrive and nothing moves
    typing         what becomes of typed text: ``appended`` (fields are not cleared), ``truncated`` (at the first of
                   ``+@$#&;``), ``ascii_only`` (other text is an error, nothing is typed), ``ascii_dropped`` (other
                   letters get lost), ``nothing`` (said to be typed)
    ime_left       an earlier run left the device on Appium's own input method: no keyboard comes up
    launch         starting an app: ``not_exported`` and ``no_activity`` are errors, ``nothing`` happens, or a system
                   dialog (``popup``) comes with it
    driver_death   once: the driver on the phone dies at the next command, which is not run; every command of that
                   session fails with ``instrumentation`` or ``socket_hang_up`` until it is made anew
    unsupported    ``mobile:`` methods that this driver, an older one, does not know
    stillborn      so many of the next sessions are over as soon as they were made
    create_fails   so many of the next sessions cannot be made
    """

    latency_ms: int | dict[str, int] = 0
    latency_after: bool = False
    session_death: Literal["before_act", "after_act"] | None = None
    answer_lost: bool = False
    popup: bool = False
    animate: bool | str = False
    source_error: SourceError | None = None
    transition_ms: int = 0
    slow_start_ms: int = 0
    connect_reads: int = 0
    relabel: dict[str, str] = {}
    shuffle: int | None = None
    stuck_scroll: bool = False
    typing: Literal["appended", "truncated", "ascii_only", "ascii_dropped", "nothing"] | None = None
    ime_left: bool = False
    launch: LaunchFault | None = None
    driver_death: DriverDeath | None = None
    unsupported: list[str] = []
    stillborn: int = 0
    create_fails: int = 0

    def latency(self, command: str) -> float:
        """Seconds that a command waits."""
        table = self.latency_ms
        return (table.get(command, 0) if isinstance(table, dict) else table) / 1000

    @property
    def moving(self) -> str:
        """The resource id of the widget that moves, or nothing."""
        return self.animate if isinstance(self.animate, str) else "action_bar_title" if self.animate else ""

    def changed(self, posted: object) -> Faults:
        """These faults with the posted ones set; raises InvalidArgument for what is not a fault."""
        if not isinstance(posted, dict):
            raise InvalidArgument(f"faults are a JSON object, not {type(posted).__name__}")
        now: dict[object, object] = msgspec.to_builtins(self)
        defaults: dict[object, object] = msgspec.to_builtins(Faults())
        for name, value in cast("dict[object, object]", posted).items():
            now[name] = defaults.get(name) if value is None else value
        try:
            return msgspec.convert(now, Faults)
        except msgspec.ValidationError as error:
            raise InvalidArgument(f"not a fault: {error}; known: {', '.join(Faults.__struct_fields__)}") from error
