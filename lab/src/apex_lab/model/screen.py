"""The screen as a model reads it: the fenced text of one user message, parsed leniently.

Consumes the lines between `<screen ...>` and `</screen>`; emits a `Screen` of `Element`s. Knows nothing of
apex_schemas: what is not in the text does not exist here. Unknown words, attributes and lines are ignored.
"""

import json
import re

from msgspec import Struct, structs

_STRING = r'"((?:[^"\\]|\\.)*)"'
_TOKEN = re.compile(
    rf"=\s*{_STRING}|([\w-]+)={_STRING}|([\w-]+)=(\S+)|{_STRING}"
    r"|\[(-?\d+),\s*(-?\d+)\]\[(-?\d+),\s*(-?\d+)\]|@\(?(-?\d+),(-?\d+)\)?|([^\s\"]+)"
)
_ATTRIBUTE = re.compile(rf"([\w-]+)=(?:{_STRING}|(\S+))")
_ID = re.compile(r"^\[?([A-Za-z]{0,3}\d+)\]?[:.]?$")
_MORE = re.compile(r"^\((\d+)\b")
_NEGATED = {"checked": "unchecked", "selected": "unselected", "enabled": "disabled", "on": "off"}
_ON = frozenset({"on", "checked"})
_OFF = frozenset({"off", "unchecked"})
_TYPED = frozenset({"empty", "filled", "password"})
_OUT_OF_REACH = frozenset({"disabled", "covered", "off-screen"})


class Element(Struct, frozen=True, kw_only=True):
    """One line of the screen. `id` is None for plain text.

    `caption` is the label; a switch or field without one goes by its hint, its container's label, or the text before.
    """

    id: str | None
    role: str
    label: str
    caption: str
    depth: int
    hint: str = ""
    value: str | None = None
    states: frozenset[str] = frozenset()
    centre: tuple[int, int] | None = None

    @property
    def checked(self) -> bool | None:
        """On, off, or None for a thing that is neither."""
        if self.states & _OFF:
            return False
        return True if self.states & _ON else None

    @property
    def is_field(self) -> bool:
        """Whether text can be typed into it."""
        named = any(word in self.role for word in ("field", "edit", "input", "textbox", "search"))
        return self.id is not None and (named or bool(self.states & _TYPED))

    @property
    def usable(self) -> bool:
        """Whether it has an id and can be reached: not disabled, covered or off the screen."""
        return self.id is not None and not self.states & _OUT_OF_REACH


class Screen(Struct, frozen=True, kw_only=True):
    """What the fence holds. Size in pixels; `omitted` elements were counted but not listed."""

    app: str = ""
    page: str = ""
    size: tuple[int, int] = (1080, 1920)
    elements: tuple[Element, ...] = ()
    omitted: int = 0
    keyboard: bool = False


def parse_screen(opening: str, lines: list[str]) -> Screen:
    """Read the opening fence line and the lines up to the closing one."""
    attributes = {
        key: _text(quoted) if quoted else bare.rstrip(">") for key, quoted, bare in _ATTRIBUTE.findall(opening)
    }
    width, _, height = attributes.get("size", "").partition("x")
    elements: list[Element] = []
    ancestors: list[Element] = []
    omitted = 0
    for line in lines:
        body = line.strip()
        if more := _MORE.match(body):
            omitted = int(more.group(1))
            continue
        depth = len(line) - len(line.lstrip())
        while ancestors and ancestors[-1].depth >= depth:
            ancestors.pop()
        parent = ancestors[-1] if ancestors else None
        element = _element(body, depth=depth, parent=parent, before=elements[-1] if elements else None)
        if element is not None:
            elements.append(element)
            ancestors.append(element)
    size = (int(width), int(height)) if width.isdigit() and height.isdigit() else (1080, 1920)
    return Screen(
        app=attributes.get("app", ""),
        page=attributes.get("page", ""),
        size=size,
        elements=tuple(elements),
        omitted=omitted,
        keyboard=attributes.get("keyboard") == "shown",
    )


def _element(body: str, *, depth: int, parent: Element | None, before: Element | None) -> Element | None:
    ident: str | None = None
    role, label, value, hint = "", None, None, ""
    states: set[str] = set()
    centre: tuple[int, int] | None = None
    for position, token in enumerate(_TOKEN.finditer(body)):
        own, key, key_text, flag, flag_word, quoted, x1, y1, x2, y2, px, py, word = token.groups()
        if own is not None:
            value = _text(own)
        elif key is not None:
            value = _text(key_text) if key in ("value", "text") else value
            hint = _text(key_text) if key == "hint" else hint
        elif flag is not None:
            states.add(flag if flag_word == "true" else _NEGATED.get(flag, "") if flag_word == "false" else flag_word)
        elif quoted is not None:
            label = _text(quoted) if label is None else label
        elif x1 is not None:
            centre = ((int(x1) + int(x2)) // 2, (int(y1) + int(y2)) // 2)
        elif px is not None:
            centre = (int(px), int(py))
        elif position == 0 and (match := _ID.match(word)):
            ident = match.group(1)
        elif not role:
            role = word.strip(",:").lower()
        else:
            states.add(word.strip(",()").lower())
    if not role and label is None and ident is None:
        return None
    label = label or ""
    beside = before.label if before is not None and before.depth == depth and before.role == "text" else ""
    element = Element(
        id=ident, role=role, label=label, caption=label, depth=depth, value=value, hint=hint,
        states=frozenset(states - {""}), centre=centre,
    )  # fmt: skip
    if label or not (element.is_field or element.checked is not None):
        return element
    return structs.replace(element, caption=hint or (parent.label if parent is not None else "") or beside)


def _text(quoted: str) -> str:
    try:
        return str(json.loads(f'"{quoted}"', strict=False))
    except ValueError:  # not JSON after all: the raw characters are what a reader sees
        return quoted
