"""What can go wrong with the stack.

StackError
├── StackInUse       another stack works on the folder
├── ServiceFailed    a process ended where it should have gone on; carries the end of its log
├── NotReady         the processes run, but no phone became ready in time
├── UnknownService   a name that is no process of this stack
└── ProviderUnset    a real provider was asked for, and key or model is not in the environment
"""

from pathlib import Path


class StackError(Exception):
    """Base of all errors of the stack."""


class StackInUse(StackError):
    def __init__(self, directory: Path) -> None:
        super().__init__(f"another demo or stack works on {directory}; end it first")
        self.directory = directory


class ServiceFailed(StackError):
    def __init__(self, name: str, reason: str, log: Path) -> None:
        super().__init__(f"{name} {reason}; its log, {log}, ends with:\n{log_tail(log)}")
        self.name, self.reason, self.log = name, reason, log


class NotReady(StackError):
    def __init__(self, what: str, seconds: float, logs: Path) -> None:
        super().__init__(f"{what} after {seconds:.0f} s; the logs are in {logs}")
        self.logs = logs


class UnknownService(StackError):
    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no process is called {name!r}; there are {', '.join(known)}")
        self.name = name


class ProviderUnset(StackError):
    def __init__(self, variable: str, meaning: str) -> None:
        super().__init__(f"{variable} is not set: set it to {meaning}, or leave out --provider")
        self.variable = variable


def log_tail(log: Path, lines: int = 8, width: int = 400) -> str:
    """The last lines of a log, for a person; "(nothing)" where it says nothing."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    return "\n".join(f"    {line[:width]}" for line in text.splitlines()[-lines:]) or "    (nothing)"
