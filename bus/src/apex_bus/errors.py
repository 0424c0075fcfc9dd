"""What can go wrong on the bus.

BusError
├── Unreachable        no server answered at start
├── NotPermitted       this identity may not do what its code does: a fault of set-up, fatal
├── Drift              a stream or consumer exists with another configuration
├── SettingsError      an environment variable is missing or not allowed
└── Transient          try again later, with the same attempt: nothing is failed for it
    ├── LogUnavailable no answer from the log, or an answer that proves nothing
    │   └── Unacknowledged   nobody has said that a message was stored
    └── StoreFull      a stream, or the whole store of the server, is full and refuses new messages
"""


class BusError(Exception):
    """Base of all errors of the bus."""


class Unreachable(BusError):
    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"no NATS server answers at {url} ({reason}); start one, or set APEX_NATS_URL")
        self.url = url


class NotPermitted(BusError):
    def __init__(self, identity: str, detail: str) -> None:
        super().__init__(
            f"identity {identity} is not permitted: {detail}; check that the server's permissions "
            "were generated from this version's subjects table"
        )
        self.identity = identity


class Drift(BusError):
    def __init__(self, what: str, differences: dict[str, tuple[object, object]]) -> None:
        listed = ", ".join(f"{name} is {found!r}, wanted {wanted!r}" for name, (found, wanted) in differences.items())
        super().__init__(f"{what} exists with another configuration: {listed}; change or delete it by hand")
        self.what, self.differences = what, differences


class SettingsError(BusError):
    def __init__(self, variable: str, reason: str) -> None:
        super().__init__(f"{variable}: {reason}")
        self.variable = variable


class Transient(BusError):
    """Nothing is known to be wrong with the work itself. `delay_s` is when to try again."""

    delay_s: float = 1.0

    def __init__(self, reason: str, *, delay_s: float = 1.0) -> None:
        super().__init__(reason)
        self.delay_s = delay_s


class LogUnavailable(Transient):
    """The store did not answer, or its answer left open whether a write took place."""


class Unacknowledged(LogUnavailable):
    """A message was sent and not acknowledged: it may be stored all the same."""


class StoreFull(Transient):
    """Known not to be stored. `whole`: not the stream is full, but all that the server may keep (`max_file`), or its
    disk."""

    def __init__(self, stream: str, detail: str, *, whole: bool = False) -> None:
        what = f"the NATS server has no room left for stream {stream}" if whole else f"stream {stream} is full"
        do = "its max_file, or free its disk, and restart it" if whole else "its limit by APEX_STORE_MIB"
        super().__init__(f"{what} ({detail}): raise {do}; what waits for it then goes on", delay_s=5.0)
        self.stream, self.whole = stream, whole
