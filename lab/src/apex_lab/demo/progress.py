"""What is going on just now: a line that the next one replaces on a terminal, a line of its own elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from apex_cli.text import styled


class Progress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("starting")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def tell(self, text: str) -> None:
        """Something that matters only while it is so."""
        if self._console.is_terminal:
            self._status.update(Text(text))
        else:
            self._console.print(styled((f"  … {text}", "dim")))

    def say(self, text: str) -> None:
        """Something that stays."""
        self._console.print(text)
