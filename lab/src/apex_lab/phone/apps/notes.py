"""Notes: a list with a search, an editor of several lines, a sheet of choices, and a question over the sheet."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import bar, button, column, floating, icon_button, item, over, recycler, row, space, text
from apex_lab.phone.widgets import field as entry
from apex_lab.phone.windows import Window, dialog, page, sheet


@dataclass
class Note:
    title: str
    body: str = ""
    pinned: bool = False


@dataclass
class NotesState:
    notes: list[Note] = field(
        default_factory=lambda: [
            Note("Shopping", "Milk, bread, 2 lemons", pinned=True),
            Note("Ideas", "A phone that explains itself"),
            Note("Wi-Fi guest", "Lab-Guest"),
        ]
    )
    search: str = ""
    trash: list[str] = field(default_factory=list[str])


class Notes(App[NotesState]):
    package: ClassVar[str] = "org.example.notes"
    bundle: ClassVar[str] = "com.apple.mobilenotes"
    label: ClassVar[str] = "Notes"

    def fresh(self) -> NotesState:
        return NotesState()

    def stopped(self) -> None:
        self.state.search = ""

    # -- pages

    def home(self) -> Window:
        wanted = self.state.search.casefold()
        shown = [each for each in self.state.notes if wanted in f"{each.title} {each.body}".casefold()]
        rows = [
            item(
                each.title or "Untitled",
                partial(self.edit, each),
                summary=f"Pinned · {each.body}" if each.pinned else each.body,
                rid="note",
                on_long=partial(self.ask, each),
            )
            for each in sorted(shown, key=lambda note: not note.pinned)
        ]
        nothing = [] if rows else [text("No notes found", rid="empty", height=40)]
        search = entry("Search notes", self.state.search, self.find, rid="search")
        everything = column(bar("Notes"), search, recycler([*rows, *nothing], rid="notes_list"), grow=True)
        return page(over(everything, floating("New note", self.create)))

    def editor(self, note: Note) -> Window:
        more = icon_button("More options", partial(self.ask, note), rid="more")
        return page(
            bar("Note", more, up=self.close),
            entry("Title", note.title, partial(self.name, note), rid="title_field", max_length=80),
            entry("Note", note.body, partial(self.write, note), rid="body_field", height=160),
            activity=".EditorActivity",
        )

    def choices(self, note: Note) -> Window:
        return sheet(
            note.title or "Untitled",
            item("Unpin" if note.pinned else "Pin", partial(self.pin, note), rid="pin"),
            item("Share", self.share, rid="share"),
            item("Delete", partial(self.open, partial(self.question, note), "question"), rid="delete"),
            activity=".MainActivity",
            cancel=self.close,
        )

    def question(self, note: Note) -> Window:
        return dialog(
            f"Delete “{note.title}”?",
            text("This cannot be undone.", rid="android:id/message"),
            space(8),
            row(
                button("Cancel", self.close, rid="android:id/button2"),
                button("Delete", partial(self.delete, note), rid="android:id/button1"),
            ),
            activity=".MainActivity",
            cancel=self.close,
        )

    # -- what the user does

    def find(self, value: str) -> None:
        self.state.search = value

    def create(self) -> None:
        note = Note("")
        self.state.notes.append(note)
        self.edit(note)
        self.phone.focus("title_field")

    def edit(self, note: Note) -> None:
        self.open(partial(self.editor, note), "editor")

    def ask(self, note: Note) -> None:
        self.open(partial(self.choices, note), "choices")

    def name(self, note: Note, value: str) -> None:
        note.title = value

    def write(self, note: Note, value: str) -> None:
        note.body = value

    def pin(self, note: Note) -> None:
        note.pinned = not note.pinned
        self.close()

    def share(self) -> None:
        self.close()
        self.phone.toast("Nothing to share with on this phone")

    def delete(self, note: Note) -> None:
        self.state.notes.remove(note)
        self.state.trash.append(note.title)
        self.close(len(self.pages))
