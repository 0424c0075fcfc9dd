"""乗換案内: a search for trains in Japanese, with stations in Chinese and Korean: words without spaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import bar, button, item, recycler, space, switch_item, text
from apex_lab.phone.widgets import field as entry
from apex_lab.phone.windows import Window, page

STATIONS = {"東京": "とうきょう", "新大阪": "しんおおさか", "博多": "はかた", "北京南站": "中国", "서울역": "대한민국"}


@dataclass
class RailState:
    start: str = "東京"
    end: str = ""
    express: bool = True
    booked: str = ""


class Rail(App[RailState]):
    package: ClassVar[str] = "org.example.rail"
    label: ClassVar[str] = "乗換案内"

    def fresh(self) -> RailState:
        return RailState()

    def home(self) -> Window:
        state = self.state
        return page(
            bar("乗換案内"),
            space(8),
            entry("出発駅", state.start, self.type_start, rid="start"),
            space(8),
            entry("到着駅", state.end, self.type_end, rid="end"),
            item("駅の一覧から選ぶ", partial(self.open, self.stations), rid="choose"),
            switch_item("新幹線を利用する", state.express, self.toggle, summary="オン" if state.express else "オフ"),
            space(12),
            button("検索", partial(self.open, self.results), rid="search", enabled=bool(state.start and state.end)),
            text(
                "ご利用ありがとうございます。空白のない長い文章でも画面の幅に合わせて折り返して表示されます。",
                look="small",
            ),
        )

    def stations(self) -> Window:
        rows = [
            item(name, partial(self.choose, name), summary=reading, rid="station") for name, reading in STATIONS.items()
        ]
        return page(bar("駅の一覧", up=self.close), recycler(rows, rid="stations"), activity=".StationsActivity")

    def results(self) -> Window:
        trains = ("のぞみ 225号", "ひかり 641号", "こだま 729号")
        rows = [
            item(name, partial(self.book, name), summary=f"{self.state.start} → {self.state.end}", rid="train")
            for name in (trains if self.state.express else ("普通列車",))
        ]
        return page(bar("検索結果", up=self.close), recycler(rows, rid="trains"), activity=".ResultsActivity")

    def type_start(self, value: str) -> None:
        self.state.start = value

    def type_end(self, value: str) -> None:
        self.state.end = value

    def toggle(self) -> None:
        self.state.express = not self.state.express

    def choose(self, name: str) -> None:
        self.state.end = name
        self.close()

    def book(self, name: str) -> None:
        self.state.booked = name
        self.close()
        self.phone.toast("予約しました")
