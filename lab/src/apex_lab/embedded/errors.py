"""What can go wrong with an embedded server.

EmbeddedError
├── WheelMissing        the package that carries the server is not installed
├── FolderInUse         another server still works on the folder
├── PortUnusable        the port that was asked for is taken, or not to be had
├── DidNotStart         the server ended, or was not ready in time; carries the end of its log
└── NoUserForPostgres   root may not run PostgreSQL, and there is nobody else to run it as
"""

from pathlib import Path


class EmbeddedError(Exception):
    """Base of all errors of the embedded servers."""


class WheelMissing(EmbeddedError):
    def __init__(self, server: str, wheel: str) -> None:
        super().__init__(f"{server} was not found; install the package {wheel} (it comes with apex-lab)")
        self.server, self.wheel = server, wheel


class FolderInUse(EmbeddedError):
    def __init__(self, folder: Path) -> None:
        super().__init__(f"another server works on {folder}; end it, or use another folder")
        self.folder = folder


class PortUnusable(EmbeddedError):
    def __init__(self, server: str, port: int, why: str) -> None:
        super().__init__(f"{server} cannot have port {port}: {why}; name another, or 0 for a free one")
        self.server, self.port, self.why = server, port, why


class DidNotStart(EmbeddedError):
    def __init__(self, server: str, reason: str, log: str) -> None:
        super().__init__(f"{server} did not start: {reason}; its log ends with:\n{log or '(nothing)'}")
        self.server, self.reason, self.log = server, reason, log


class NoUserForPostgres(EmbeddedError):
    def __init__(self, reason: str) -> None:
        super().__init__(
            f"PostgreSQL refuses to run as root and cannot run as another user here: {reason}; start as a normal user"
        )
        self.reason = reason
