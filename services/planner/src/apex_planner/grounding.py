"""From what a model named to what can be done: a tool call and the current Scene give an Action with its Target.

An id must be one of this Scene's and reachable; a point must lie on the screen and in an element of it. Only where the
tree says nothing (a picture alone, or an opaque surface) is a bare point taken, and then it is called ungrounded.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from apex_planner.scene_text import OPAQUE_ROLES, has_id, quoted
from apex_planner.tools import BY_NAME, REASONS, BadArgument, Tool, read_arguments
from apex_planner.view import View
from apex_schemas import actions
from apex_schemas.actions import Action
from apex_schemas.decision import ToolCallDecision
from apex_schemas.geometry import Point, Size
from apex_schemas.scene import Element, Scene
from apex_schemas.steps import Target

_ID: Final = re.compile(r"^\W*e?(\d{1,5})\b", re.IGNORECASE)
_OPAQUE_CLASSES: Final = ("SurfaceView", "TextureView", "MapView", "VideoView", "UnityPlayer", "FlutterView")
_MOST_TEXT: Final = 10_000
_MOST_APP: Final = 256


class Grounded(NamedTuple):
    action: Action
    target: Target | None = None
    ungrounded: bool = False


class Refusal(NamedTuple):
    """`fault` is a sentence that tells the model what was wrong with its answer."""

    fault: str


class _Place(NamedTuple):
    at: Point
    element: Element | None

    @property
    def ungrounded(self) -> bool:
        return self.element is None

    @property
    def target(self) -> Target | None:
        return None if self.element is None else target_of(self.element)


def ground(
    call: ToolCallDecision, scene: Scene, offered: frozenset[str], *, seen: Size | None = None
) -> Grounded | Refusal:
    """Check a tool call against the tools offered and the Scene that it was decided on.

    `seen` is the size of the picture that the model saw, in whose pixels it names points; without a picture they are
    the screen's.
    """
    tool = BY_NAME.get(call.tool)
    if tool is None or tool.name not in offered:
        return Refusal(f"there is no tool {call.tool[:60]!r}; the tools are {', '.join(sorted(offered))}.")
    arguments = read_arguments(tool, call.arguments)
    if isinstance(arguments, BadArgument):
        return Refusal(arguments.fault)
    given = {"purpose": call.purpose, "expected_outcome": call.expected_outcome}
    blank = [name for name in REASONS if tool.on_device and not (given[name] or "").strip()]
    if blank:
        return Refusal(f"{tool.name} needs a {' and an '.join(blank)}, in words.")
    return _act(tool, arguments, scene, View(seen or scene.screen.size, scene.screen.size))


def target_of(element: Element) -> Target:
    """What identifies an element on the phone. Nothing is cleaned: it is compared with what the phone says.

    A field for secrets is called `password`, so that what is typed into it is not read back or repeated.
    """
    return Target(
        element=element.id,
        role="password" if element.password else element.role,
        label=element.label,
        bounds=element.bounds,
        resource_id=element.resource_id,
        class_name=element.class_name,
        text=None if element.password else element.text,
        description=element.description,
        context=element.context,
    )


def _act(tool: Tool, given: Mapping[str, Any], scene: Scene, view: View) -> Grounded | Refusal:
    match tool.name:
        case "tap" | "long_press":
            make = actions.Tap if tool.name == "tap" else actions.LongPress
            place = _place(given, scene, view, f"{tool.name} needs an element, or x and y.")
            if isinstance(place, Refusal):
                return place
            return Grounded(make(at=place.at), place.target, place.ungrounded)
        case "swipe":
            return _swipe(given, scene, view)
        case "input_text":
            return _input(given, scene)
        case "scroll":
            return _scroll(given, scene)
        case "launch_app" | "terminate_app":
            app = str(given["app"]).strip()
            if not 0 < len(app) <= _MOST_APP:
                return Refusal(f"{tool.name} needs the name or package id of an app.")
            return Grounded(actions.LaunchApp(app=app) if tool.name == "launch_app" else actions.TerminateApp(app=app))
        case "wait":
            seconds = given["seconds"]
            if not 0 < seconds <= 30:
                return Refusal("wait takes more than 0 and at most 30 seconds.")
            return Grounded(actions.Wait(seconds=seconds))
        case "press_key":
            return Grounded(actions.PressKey(key=given["key"]))
        case "back":
            return Grounded(actions.Back())
        case "home":
            return Grounded(actions.Home())
        case _:
            if not str(given["reason"]).strip():
                return Refusal("finish_task needs a reason, in words.")
            return Grounded(actions.FinishTask(**given))


def _place(given: Mapping[str, Any], scene: Scene, view: View, otherwise: str) -> _Place | Refusal:
    if str(given.get("element", "")).strip():
        return _named(str(given["element"]), scene)
    if "x" in given and "y" in given:
        return _point(given["x"], given["y"], scene, view)
    return Refusal(otherwise)


def _named(name: str, scene: Scene) -> _Place | Refusal:
    found = _ID.match(name)
    element = scene.element(f"e{int(found[1])}") if found else None
    if element is None:
        listed = ", ".join(each.id for each in scene.elements if has_id(each))
        return Refusal(f"there is no element {name[:40]!r} on this screen; its ids are: {listed[:400] or 'none'}.")
    if element.tap_point is None:
        why = {
            "off_screen": "is off the screen: swipe it into view first",
            "occluded": "is covered by something else: deal with that first",
            "no_bounds": "has no place on the screen",
            None: "cannot be reached",
        }[element.obstacle]
        return Refusal(f"{element.id} ({quoted(element.label)}) {why}.")
    return _Place(element.tap_point, element)


def _point(x: int, y: int, scene: Scene, view: View) -> _Place | Refusal:
    at = view.point(x, y)
    if at is None:
        return _off_screen(x, y, view)
    if scene.source == "screenshot-only":
        return _Place(at, None)
    element = _element_at(at, scene)
    if element is None:
        return Refusal(f"the point {x},{y} lies in no element of this screen; name an element by its id.")
    return _Place(at, None if _is_opaque(element) else element)


def _is_opaque(element: Element) -> bool:
    """Whether the tree cannot see what is inside: then the point itself is meant, and not the surface."""
    return element.role in OPAQUE_ROLES or (element.class_name or "").endswith(_OPAQUE_CLASSES)


def _element_at(at: Point, scene: Scene) -> Element | None:
    """The smallest element around a point, one that can be acted on before one that cannot."""
    around = [each for each in scene.elements if each.bounds is not None and each.bounds.contains(at)]
    return min(around, key=lambda each: (not has_id(each), each.bounds.area if each.bounds else 0), default=None)


def _off_screen(x: int, y: int, view: View) -> Refusal:
    return Refusal(f"the point {x},{y} is not on the screen, which is {view.seen.width}x{view.seen.height}.")


def _swipe(given: Mapping[str, Any], scene: Scene, view: View) -> Grounded | Refusal:
    ends: list[Point] = []
    for x, y in ((given["x1"], given["y1"]), (given["x2"], given["y2"])):
        # The far edge itself is one pixel out; a model means the edge.
        at = view.point(x - (x == view.seen.width), y - (y == view.seen.height))
        if at is None:
            return _off_screen(x, y, view)
        ends.append(at)
    start, end = ends
    if start == end:
        return Refusal("the swipe ends where it begins.")
    scrolling = [each for each in scene.elements if each.scrollable and each.bounds and each.bounds.contains(start)]
    inner = min(scrolling, key=lambda each: each.bounds.area if each.bounds else 0, default=None)
    ungrounded = scene.source == "screenshot-only"
    return Grounded(actions.Swipe(start=start, end=end), None if inner is None else target_of(inner), ungrounded)


def _input(given: Mapping[str, Any], scene: Scene) -> Grounded | Refusal:
    text = given["text"]
    if len(text) > _MOST_TEXT:
        return Refusal(f"the text has {len(text)} characters, more than {_MOST_TEXT}.")
    if str(given.get("element", "")).strip():
        place = _named(given["element"], scene)
        if isinstance(place, Refusal):
            return place
        assert place.element is not None
        if not (place.element.editable or place.element.focused):
            return Refusal(f"{place.element.id} ({quoted(place.element.label)}) is no field that takes text.")
        return Grounded(actions.InputText(text=text, at=place.at), place.target)
    focused = next((each for each in scene.elements if each.focused and each.editable), None)
    if focused is not None:
        return Grounded(actions.InputText(text=text, at=focused.tap_point), target_of(focused))
    if scene.source == "screenshot-only":
        return Grounded(actions.InputText(text=text), None, True)
    return Refusal("no field has the focus; name the field by its id.")


def _scroll(given: Mapping[str, Any], scene: Scene) -> Grounded | Refusal:
    direction = given["direction"]
    if not str(given.get("element", "")).strip():
        return Grounded(actions.Scroll(direction=direction), None, scene.source == "screenshot-only")
    place = _named(given["element"], scene)
    if isinstance(place, Refusal):
        return place
    return Grounded(actions.Scroll(direction=direction, at=place.at), place.target)
