"""What can go wrong in a command; the exit code is part of the error.

CommandError
├── TaskNotSucceeded   exit 1: the task that was followed ended, but not well
├── ChecksFailed       exit 1: a check of `apex test` failed
├── NotReachable       exit 3: no server, no service behind it, or no permission
├── NotStored          exit 3: the server has not said that it stored what was asked for
├── NoRoom             exit 3: the server has said that it did not
├── NotFound           exit 4: there is no such task
├── BadInput           exit 5: a file or an option's value cannot be used
│   └── Ambiguous      exit 5: more than one task begins with what was given
└── NotInstalled       exit 6: this installation lacks a part that the command needs
"""

from typing import Final

EXIT_CODES: Final = """\b
Exit codes:
  0  done; a task that was followed succeeded
  1  a followed task failed or was cancelled; a check failed; the demo was not as expected; a stack is up already,
     or could not go on
  2  the command line is wrong
  3  no server, no service behind it, or no permission
  4  there is no such task
  5  a file, a value or a port cannot be used, or a key that was asked for is not set
  6  a part of the installation, or of what the demo needs, is missing
  130  interrupted"""


class CommandError(Exception):
    """Base of all errors of the command; one or two sentences: what failed, where, and what to do."""

    exit_code = 1


class TaskNotSucceeded(CommandError):
    def __init__(self, task: str, status: str) -> None:
        super().__init__(f"task {task} {status}; `apex show {task}` tells how it went")
        self.task, self.status = task, status


class ChecksFailed(CommandError):
    def __init__(self, names: list[str]) -> None:
        super().__init__(f"failed: {', '.join(names)}")
        self.names = names


class NotReachable(CommandError):
    """`what` ends where " at <place>" can follow."""

    exit_code = 3

    def __init__(self, what: str, place: str) -> None:
        super().__init__(f"{what} at {place}; start a stack with `apex up`, or set APEX_NATS_URL")
        self.place = place


class NotStored(CommandError):
    """Nobody knows: it may be there all the same."""

    exit_code = 3

    def __init__(self, why: str, place: str) -> None:
        super().__init__(f"not confirmed by {place}: {why}; before you ask again, look whether `apex queue` has it")
        self.place = place


class NoRoom(CommandError):
    exit_code = 3

    def __init__(self, why: str, place: str) -> None:
        super().__init__(f"not taken by {place}, and nothing will come of it: {why}; then ask again")
        self.place = place


class NotFound(CommandError):
    exit_code = 4

    def __init__(self, what: str, look: str = "`apex tasks` lists those that there are") -> None:
        super().__init__(f"{what}; {look}" if look else what)


class BadInput(CommandError):
    exit_code = 5


class Ambiguous(BadInput):
    def __init__(self, wanted: str, listed: list[str]) -> None:
        lines = "".join(f"\n  {line}" for line in listed)
        super().__init__(f"more than one task begins with {wanted}; give more of its digits:{lines}")
        self.wanted = wanted


class NotInstalled(CommandError):
    exit_code = 6

    def __init__(self, part: str) -> None:
        super().__init__(f"{part} is not installed here; run the command as ./apex from a clone")
