"""The name of a page, `App > Screen`: short, the same every time the page is seen."""

import re

from apex_perception.nodes import Tree

_GENERIC = frozenset(("android", "app", "apps", "mobile", "client", "main", "prod", "release", "google", "the", "com"))
_LONGEST = 60


def app_name(app: str | None) -> str | None:
    """A package or bundle id as a person would say it; other names stay."""
    if app is None or "." not in app or " " in app:
        return app
    parts = [part for part in app.split(".") if part]
    named = [part for part in parts[1:] if part.lower() not in _GENERIC and len(part) > 2]
    if not named:
        return app
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", named[-1])
    return words[:1].upper() + words[1:]


def name(tree: Tree, *, titles: tuple[str, ...], dialog: str | None, activity: str | None, app: str | None) -> str:
    """`dialog` is the title of the dialog on top. Falls back to the activity, then to the app alone."""
    host = app or tree.app if tree.dialect in ("web", "html") else None
    known = host.removeprefix("www.") if host else app_name(app or tree.app)
    screen = dialog or next(iter(titles), None) or tree.title or _from_activity(activity)
    parts = [part for part in (known, _short(screen)) if part]
    if len(parts) == 2 and parts[0].casefold() == parts[1].casefold():
        parts = parts[1:]
    return " > ".join(parts) or "unknown"


def _short(text: str | None) -> str | None:
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _from_activity(activity: str | None) -> str | None:
    if not activity:
        return None
    last = re.split(r"[./$]", activity)[-1].removesuffix("Activity")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last)
    return words or None
