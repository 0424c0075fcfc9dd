"""A turn as a playbook sees it: the prompt, the goal's slots, and the questions that rules ask of them.

Pure. Everything is worked out from goal, history and screen of this one request; nothing is remembered between turns.
What earlier turns wanted is read from their rationales, as a model would.
"""

import re
import zlib
from collections.abc import Iterable

from msgspec import Struct

from apex_lab.model.labels import ENOUGH, fit, words
from apex_lab.model.moves import Launch, Move, Swipe, Tap, Way, finish
from apex_lab.model.prompt import Prompt, Turn
from apex_lab.model.screen import Element

_LOOKED = re.compile(r'look for "(?P<what>[^"]*)" further (?P<way>up|down) \(view (?P<view>[0-9a-f]{4})\)')
_SCROLLS = 12
_BLIND = 4
_BUNDLES = {
    "com.apple.springboard": "launcher",
    "com.apple.Preferences": "settings",
    "com.apple.MobileAddressBook": "contacts",
    "com.apple.mobiletimer": "clock",
    "com.apple.MobileSMS": "messages",
}
"""Bundle ids that do not say what people call the app."""
_CHANGING = re.compile(r"\d+:\d\d|\d+ ?%")


class Situation(Struct, frozen=True, kw_only=True):
    """One turn. `slots` are the named groups of the goal's pattern (absent ones are empty)."""

    prompt: Prompt
    slots: dict[str, str] = {}

    @property
    def elements(self) -> tuple[Element, ...]:
        """All lines of the screen, in reading order."""
        return self.prompt.screen.elements

    @property
    def history(self) -> tuple[Turn, ...]:
        """The turns so far, oldest first."""
        return self.prompt.history

    @property
    def turns(self) -> int:
        """How many turns are over; a long history leaves lines out, their numbers tell."""
        return self.history[-1].number if self.history else 0

    def find(
        self,
        *wanted: str,
        among: Iterable[Element] | None = None,
        least: float = ENOUGH,
    ) -> Element | None:
        """The usable element that fits one of the names best; fields only when asked for through `among`."""
        best, found = 0.0, None
        for element in self.elements if among is None else among:
            if not element.usable or (among is None and element.is_field):
                continue
            called = (element.caption, element.hint) if element.hint else (element.caption,)
            score = max((fit(name, text) for name in wanted for text in called), default=0.0)
            score -= 0.05 if not element.label else 0.0
            if score >= least and score > best:
                best, found = score, element
        return found

    def sees(self, wanted: str, *, least: float = 0.7) -> Element | None:
        """Any line, text included but no field, that shows the wanted words."""
        lines = (line for line in self.elements if not line.is_field)
        return next((line for line in lines if fit(wanted, line.label) >= least), None)

    def fields(self) -> tuple[Element, ...]:
        """What text can be typed into."""
        return tuple(element for element in self.elements if element.is_field and element.usable)

    def times(self, intent: str) -> int:
        """How many turns so far had this intent."""
        return sum(1 for turn in self.history if intent in turn.rationale)

    def failed(self, intent: str) -> int:
        """How many turns with this intent are known to have failed."""
        return sum(1 for turn in self.history if intent in turn.rationale and turn.success is False)

    def in_app(self, name: str) -> bool:
        """Whether the app in front is this one, by its package or page."""
        screen = self.prompt.screen
        parts = words(_BUNDLES.get(screen.app, screen.app).replace(".", " "))
        return any(part.startswith(word) for word in words(name) for part in parts) or (
            not screen.app and fit(name, screen.page) >= 0.7
        )

    def view(self) -> str:
        """Four hex digits for what is listed now, order, clock and battery aside."""
        labels = sorted(line.label for line in self.elements if line.label and not _CHANGING.search(line.label))
        return f"{zlib.crc32(chr(0).join(labels).encode()) & 0xFFFF:04x}"


def tap(element: Element, intent: str, expect: str) -> Move:
    """The move that touches an element."""
    return Move(act=Tap(element=element), intent=intent, expect=expect)


def swipe(at: Situation, towards: Way) -> Swipe:
    """A swipe over the part of the screen that no keyboard covers."""
    return Swipe(towards=towards, size=at.prompt.screen.size, short=at.prompt.screen.keyboard)


def scroll_for(at: Situation, what: str, *, limit: int = _SCROLLS) -> Move | None:
    """One more swipe in search of something: down until nothing new comes, then up. None: everything was seen."""
    what = what.replace('"', "'")[:40].strip()
    run: list[tuple[str, str]] = []
    for turn in reversed(at.history):
        looked = _LOOKED.search(turn.rationale)
        if looked is None or looked["what"] != what:
            break
        if turn.success is not False or not run:
            run.append((looked["way"], looked["view"]))
    total = at.times(f'look for "{what}" further')
    blind, in_row = _blind_scrolls(at)
    if len(run) >= limit or total >= 2 * limit or in_row >= 2 * _BLIND or blind >= 4 * _BLIND:
        return None
    way, view = (run[0][0] if run else "down" if in_row < _BLIND else "up"), at.view()
    if any(seen == (way, view) for seen in run):
        if way == "up":
            return None
        way = "up"
    return Move(
        act=swipe(at, "up" if way == "up" else "down"),
        intent=f'look for "{what}" further {way} (view {view})',
        expect=f'Other entries come into view, perhaps "{what}".',
    )


def _blind_scrolls(at: Situation) -> tuple[int, int]:
    """Swipes in the history that came without a rationale: all of them, and those since the last other act."""
    blind = [not turn.rationale and turn.tool in ("swipe", "scroll") for turn in at.history]
    return sum(blind), next((count for count, one in enumerate(reversed(blind)) if not one), len(blind))


def open_app(at: Situation, name: str, *, android: str, ios: str) -> Move | None:
    """The next way to get an app in front: its icon, its package, its name. None: all were tried or it is in front."""
    if at.in_app(name):
        return None
    expect = f"{name} is in front."
    by_icon = f"open {name} by its icon"
    if at.in_app("launcher") and (icon := at.find(name)) and at.times(by_icon) < 2:
        return tap(icon, by_icon, expect)
    package = ios if at.prompt.screen.app.startswith("com.apple.") else android
    for app in (package, name):
        intent = f'launch the app "{app}"'
        if at.failed(intent) == 0 and at.times(intent) < 2:
            return Move(act=Launch(app=app), intent=intent, expect=expect)
    return finish(False, f"the app {name} could not be opened: neither its icon nor its name led to it")
