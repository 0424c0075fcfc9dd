"""What can go wrong between the executor and a phone.

ExecutorError
├── LeaseLost       somebody else drives the device now: stop at once
├── DeviceFailed    the device cannot be used: no session, or not ready; it is set aside for a while
├── Retired         the device was taken out of the configuration, and has no task any more
├── Stillborn       a session was made and does not answer
├── ActRefused      an act that was not begun, with a code that reaches the model
└── ActCutShort     an act that failed when a part of it had been done
"""


class ExecutorError(Exception):
    """Base of all errors of the executor."""


class LeaseLost(ExecutorError):
    def __init__(self, device: str) -> None:
        super().__init__(f"{device} is driven by somebody else now")
        self.device = device


class DeviceFailed(ExecutorError):
    def __init__(self, device: str, reason: str) -> None:
        super().__init__(f"{device} cannot be used: {reason}")
        self.device, self.reason = device, reason


class Retired(ExecutorError):
    def __init__(self, device: str) -> None:
        super().__init__(f"{device} is no longer among the devices of this executor")
        self.device = device


class Stillborn(ExecutorError):
    """It has been deleted again; `cause` is what came instead of an answer."""

    def __init__(self, session: str, cause: Exception) -> None:
        said = str(getattr(cause, "msg", None) or cause or type(cause).__name__).strip().splitlines()[0][:200]
        super().__init__(f"a session was made and does not answer: {said}")
        self.session, self.cause = session, cause


class ActRefused(ExecutorError):
    """Nothing was done to the phone. `message` is one sentence for the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class ActCutShort(ExecutorError):
    """The phone has been touched, then `cause` came: whatever that proves holds for the rest of the act alone."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"a part of the act was done, then {type(cause).__name__} came")
        self.cause = cause
