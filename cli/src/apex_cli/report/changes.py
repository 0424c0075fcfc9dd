"""What is different on the screen since the turn before. Pure: two scenes in, words out."""

from collections import Counter
from typing import NamedTuple

from apex_cli.text import plain
from apex_schemas.queries import SceneBox, TimelineScene


class Changes(NamedTuple):
    """Labels, in the order of the screen. `app` is set when another app is in front."""

    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    app: str | None = None

    @property
    def none(self) -> bool:
        return not (self.came or self.went or self.changed or self.app)


def between(before: TimelineScene | None, after: TimelineScene | None) -> Changes | None:
    """None where one of the two is not on record."""
    if before is None or after is None or before.boxes is None or after.boxes is None:
        return None
    old, new = _named(before), _named(after)
    earlier = {_key(box): box for box in old}
    changed = [
        f"{plain(box.label)}: {_state(was)} → {_state(box)}"
        for box in new
        if (was := earlier.get(_key(box))) is not None and _state(was) != _state(box)
    ]
    had, has = Counter(map(_key, old)), Counter(map(_key, new))
    return Changes(
        came=tuple(plain(box.label) for box in _once(new) if not had[_key(box)]),
        went=tuple(plain(box.label) for box in _once(old) if not has[_key(box)]),
        changed=tuple(changed),
        app=after.app if after.app != before.app else None,
    )


def _named(scene: TimelineScene) -> list[SceneBox]:
    return [box for box in scene.boxes or () if box.label.strip()]


def _once(boxes: list[SceneBox]) -> list[SceneBox]:
    return list({_key(box): box for box in boxes}.values())


def _key(box: SceneBox) -> tuple[str, str]:
    return box.role, box.label


def _state(box: SceneBox) -> str:
    on = {True: "on", False: "off", None: ""}[box.checked]
    words = " ".join(part for part in (on, plain(box.value or ""), "" if box.enabled else "disabled") if part)
    return words or "empty"
