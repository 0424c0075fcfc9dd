"""A game on one opaque surface: the page source says nothing of its board, the picture shows it, touches arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import Widget, bar, button, column, row, space, text
from apex_lab.phone.windows import Window, page

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


@dataclass
class GameState:
    """`board` has nine places: empty, ``X`` (the player) or ``O``, which answers at the first empty place."""

    board: list[str] = field(default_factory=lambda: [""] * 9)
    wins: int = 0
    moves: int = 0


class Game(App[GameState]):
    package: ClassVar[str] = "org.example.game"
    label: ClassVar[str] = "Noughts"

    def fresh(self) -> GameState:
        return GameState()

    def home(self) -> Window:
        return page(
            bar("Noughts and crosses"),
            space(40),
            text(f"Games won: {self.state.wins}", rid="wins", height=32),
            button("Play", partial(self.open, self.board), rid="play"),
        )

    def board(self) -> Window:
        lines = [row(*(self.place(3 * line + n) for n in range(3)), height=104) for line in range(3)]
        again = Widget(cls="android.view.View", text="New game", look="button", height=44, on_tap=self.restart)
        surface = Widget(
            cls="android.view.SurfaceView",
            rid="surface",
            look="dark",
            grow=True,
            opaque=True,
            children=(column(space(24), *lines, space(16), again, pad=12),),
        )
        return Window(body=column(surface, rid="content"), activity=".BoardActivity")

    def place(self, n: int) -> Widget:
        sign = self.state.board[n]
        return Widget(desc=f"place {n + 1}", text=sign, look="piece", height=96, on_tap=partial(self.mark, n))

    def mark(self, n: int) -> None:
        board = self.state.board
        if board[n] or self.winner():
            return
        board[n] = "X"
        self.state.moves += 1
        if self.winner():
            self.state.wins += 1
        elif "" in board:
            board[board.index("")] = "O"

    def winner(self) -> str:
        board = self.state.board
        return next((board[a] for a, b, c in LINES if board[a] and board[a] == board[b] == board[c]), "")

    def restart(self) -> None:
        self.state.board = [""] * 9
