"""Music player: while it plays, bars dance and the time runs, so that the screen never comes to rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import Widget, bar, button, icon_button, item, progress, recycler, row, space, text
from apex_lab.phone.windows import Window, page

TRACKS = {"Rain on a tin roof": 184, "Relay clicks": 95, "Café Müller": 241, "夜の駅": 203}
"""Title → seconds."""


@dataclass
class PlayerState:
    track: str = ""
    playing: bool = False
    at: float = 0.0
    since: float = 0.0
    liked: bool = False


class Player(App[PlayerState]):
    package: ClassVar[str] = "org.example.player"
    label: ClassVar[str] = "Music"

    def fresh(self) -> PlayerState:
        return PlayerState()

    @property
    def animated(self) -> bool:
        return self.state.playing and bool(self.pages) and self.pages[-1].name == "track"

    def home(self) -> Window:
        rows = [
            item(name, partial(self.play, name), summary=f"{seconds // 60}:{seconds % 60:02}", rid="track")
            for name, seconds in TRACKS.items()
        ]
        return page(bar("Music"), recycler(rows, rid="tracks"))

    def track(self) -> Window:
        state, at = self.state, int(self.place())
        long = TRACKS.get(state.track, 1)
        level = [Widget(rid=f"level{n}", look="piece", width=24, height=24, drifts=state.playing) for n in range(5)]
        return page(
            bar("Now playing", up=self.close),
            space(24),
            text(state.track, rid="track_title", look="title", height=36),
            row(*level, height=40),
            progress(at / long, "Position", rid="position"),
            text(f"{at // 60}:{at % 60:02}", rid="elapsed", look="small", height=18),
            row(
                icon_button("Previous", partial(self.skip, -1), rid="previous"),
                button("Pause" if state.playing else "Play", self.toggle, rid="play", width=120),
                icon_button("Next", partial(self.skip, 1), rid="next"),
                icon_button("Unlike" if state.liked else "Like", self.like, rid="like"),
                height=56,
            ),
            activity=".TrackActivity",
        )

    def place(self) -> float:
        """Seconds into the track."""
        state = self.state
        at = state.at + (self.phone.now() - state.since if state.playing else 0.0)
        return min(at, TRACKS.get(state.track, 0))

    def play(self, name: str) -> None:
        self.state = PlayerState(track=name, playing=True, since=self.phone.now())
        self.open(self.track)

    def toggle(self) -> None:
        at = self.place()
        self.state.playing, self.state.at, self.state.since = not self.state.playing, at, self.phone.now()

    def skip(self, by: int) -> None:
        names = list(TRACKS)
        name = names[(names.index(self.state.track) + by) % len(names)]
        self.state = PlayerState(track=name, playing=self.state.playing, since=self.phone.now())

    def like(self) -> None:
        self.state.liked = not self.state.liked
