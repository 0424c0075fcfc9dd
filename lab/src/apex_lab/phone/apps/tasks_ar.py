"""A small to-do list in Arabic: a right-to-left screen, and the shortest example of an app."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import bar, button, recycler, space, switch_item
from apex_lab.phone.widgets import field as entry
from apex_lab.phone.windows import Window, page


@dataclass
class TasksState:
    done: dict[str, bool] = field(default_factory=lambda: {"شراء الخبز": False, "الاتصال بالطبيب": True})
    typed: str = ""


class Tasks(App[TasksState]):
    package: ClassVar[str] = "org.example.tasks"
    label: ClassVar[str] = "مهام"

    def fresh(self) -> TasksState:
        return TasksState()

    def stopped(self) -> None:
        self.state.typed = ""

    def home(self) -> Window:
        rows = [switch_item(name, on, partial(self.toggle, name)) for name, on in self.state.done.items()]
        return page(
            bar("المهام"),
            recycler(rows, rid="tasks"),
            button("إضافة مهمة", partial(self.open, self.add), rid="add"),
            rtl=True,
        )

    def add(self) -> Window:
        return page(
            bar("مهمة جديدة", up=self.close),
            space(16),
            entry("الاسم", self.state.typed, self.type, rid="task_name", max_length=60),
            space(16),
            button("حفظ", self.save, rid="save", enabled=bool(self.state.typed.strip())),
            activity=".AddActivity",
            rtl=True,
        )

    def toggle(self, name: str) -> None:
        self.state.done[name] = not self.state.done[name]

    def type(self, value: str) -> None:
        self.state.typed = value

    def save(self) -> None:
        self.state.done[self.state.typed.strip()] = False
        self.state.typed = ""
        self.close()
