"""A goal that spells out its steps, as a list of them: pure parsing, no screen."""

import re
from typing import Literal

from msgspec import Struct

Verb = Literal["tap", "open", "launch", "type", "scroll", "close", "check"]
Way = Literal["up", "down", "left", "right"]

_QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|„([^“”]*)[“”]|«([^»]*)»")
_HELD = re.compile("\x00(\\d+)\x00")
_VERBS = (
    "tap|click|press|select|choose|toggle|open|go to|launch|start|type|enter|write|scroll|swipe|close|terminate|quit"
    "|check|verify|expect|see"
)
_BETWEEN = re.compile(
    rf"(?:\s*[,;.]\s*(?:and\s+)?(?:then\s+)?|\s+(?:and\s+then|and|then)\s+)(?=(?:{_VERBS})\b)", re.IGNORECASE
)
_TARGET = r"(?: the)?(?: app)? (?P<what>.+?)(?: app)?"
_SHOWN = r"(?: (?:is |are )?(?:shown|visible|there|present))?"
_FIELD = r"(?: (?:in|into|to)(?: the)?(?: field)? (?P<where>.+?)(?: field)?)?"
_KINDS = r"(?: (?:button|switch|row|icon|entry))?"


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FORMS: tuple[tuple[Verb, re.Pattern[str]], ...] = (
    ("type", _form(r"(?:type|enter|write)(?: the text)? (?P<what>.+?)" + _FIELD)),
    ("scroll", _form(r"(?:scroll|swipe)(?: (?P<way>up|down|left|right))?")),
    ("check", _form(r"(?:check|verify|expect|see)(?: that)?(?: the)?(?: text)? (?P<what>.+?)" + _SHOWN)),
    ("close", _form(r"(?:close|terminate|quit)" + _TARGET)),
    ("launch", _form(r"(?:launch|start)" + _TARGET)),
    ("open", _form(r"(?:open|go to)" + _TARGET)),
    ("tap", _form(r"(?:tap|click|press|select|choose|toggle)(?: on)?(?: the)? (?P<what>.+?)" + _KINDS)),
)
_WAYS: dict[str, Way] = {"up": "up", "down": "down", "left": "left", "right": "right"}


class Step(Struct, frozen=True, kw_only=True):
    """One thing to do. `what` is the target, or the text for `type`; `where` its field (empty: the focused one)."""

    verb: Verb
    text: str
    what: str = ""
    where: str = ""
    way: Way = "down"


def parse_steps(goal: str) -> tuple[Step, ...]:
    """The steps of a goal, or none when any part of it is not understood."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(next(text for text in match.groups() if text is not None))
        return f"\x00{len(held) - 1}\x00"

    def give(text: str | None, quote: str = "") -> str:
        return _HELD.sub(lambda match: f"{quote}{held[int(match.group(1))]}{quote}", text or "").strip()

    flat = _QUOTED.sub(hold, " ".join(goal.split())).strip(" .!")
    steps: list[Step] = []
    for part in _BETWEEN.split(flat):
        step = _step(part)
        if step is None:
            return ()
        verb, found = step
        steps.append(
            Step(
                verb=verb,
                text=give(part, '"'),
                what=give(found.get("what")),
                where=give(found.get("where")),
                way=_WAYS[(found.get("way") or "down").lower()],
            )
        )
    return tuple(steps)


def _half_quoted(text: str | None) -> bool:
    """Whether words stand beside a quoted text: more was meant than a name."""
    return bool(text and _HELD.search(text) and not _HELD.fullmatch(text))


def _step(part: str) -> tuple[Verb, dict[str, str | None]] | None:
    for verb, form in _FORMS:
        if (match := form.fullmatch(part)) and not any(map(_half_quoted, match.groupdict().values())):
            return verb, match.groupdict()
    return None
