"""What perception saw: the only artefact of a screen that any other service receives (the Perception Boundary)."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.structs import Wire


class Element(Wire, frozen=True, kw_only=True):
    """One thing on the screen. Its `id` means something in this Scene only.

    `tap_point` is the middle of its largest free visible part; None where it cannot be reached by a coordinate, and
    then `obstacle` says why. `parent` is the id of the element that contains it. `more` says where the content of
    something that scrolls certainly goes on; `change` what is new or different since the turn before, on the same page.
    """

    id: Annotated[str, Meta(pattern=r"^e[0-9]{1,5}$(?!\n)")]
    role: str
    label: str = ""
    value: str | None = None
    hint: str | None = None
    bounds: Bounds | None = None
    tap_point: Point | None = None
    obstacle: Literal["off_screen", "occluded", "no_bounds"] | None = None
    parent: str | None = None
    depth: int = 0
    interactive: bool = False
    editable: bool = False
    scrollable: bool = False
    enabled: bool = True
    checked: bool | None = None
    selected: bool = False
    focused: bool = False
    password: bool = False
    resource_id: str | None = None
    class_name: str | None = None
    text: str | None = None
    description: str | None = None
    context: Literal["native", "web"] = "native"
    more: tuple[Literal["above", "below", "left", "right"], ...] = ()
    change: Literal["new", "changed"] | None = None


class Screen(Wire, frozen=True, kw_only=True):
    """Size in pixels; `scale` is pixels per unit of the page source (1 on Android, 2 or 3 on iOS).

    `rotation` is in degrees clockwise from the device's natural orientation.
    """

    size: Size
    scale: Annotated[float, Meta(gt=0, le=16)] = 1.0
    rotation: Literal[0, 90, 180, 270] = 0


class Keyboard(Wire, frozen=True, kw_only=True):
    """The on-screen keyboard, when it is shown. `bounds` is None when its place is not known.

    `keys` counts its letters and signs, which are no elements and are not counted as omitted.
    """

    bounds: Bounds | None = None
    keys: int = 0


class ScreenshotRef(Wire, frozen=True, kw_only=True):
    """Where the picture of this Scene lies for the planner, and what stands for it elsewhere: hash and size."""

    subject: str
    sha256: str
    bytes: int
    size: Size
    media_type: str = "image/png"


class Scene(Wire, tag_field="type", tag="scene", frozen=True, kw_only=True):
    """One observation, settled or not.

    `fingerprint` identifies what is shown, deaf to clocks and progress bars. `recovery` names the steps by which a
    page source was read that was damaged (`recovered`) or said too little of its screen. `omitted` counts elements
    left out.
    """

    app: str | None
    page: str
    screen: Screen
    elements: tuple[Element, ...] = ()
    keyboard: Keyboard | None = None
    fingerprint: str = ""
    settled: bool = True
    source: Literal["tree", "web", "screenshot-only"] = "tree"
    recovered: bool = False
    recovery: tuple[str, ...] = ()
    omitted: int = 0
    screenshot: ScreenshotRef | None = None
    activity: str | None = None
    observed_at_ms: int = 0
    observe_ms: int = 0

    def element(self, element_id: str) -> Element | None:
        return next((element for element in self.elements if element.id == element_id), None)

    def differs_from(self, fingerprint: str) -> bool | None:
        """Whether it shows something else than the Scene of that fingerprint. None where that is not known: one of the
        two has none, or they are equal and deaf to what is there: a picture, a drawn surface, what is in a password.
        """
        if not fingerprint or not self.fingerprint:
            return None
        if fingerprint != self.fingerprint:
            return True
        deaf = any(element.password or element.role in _DRAWN for element in self.elements)
        return None if deaf or self.source == "screenshot-only" else False


_DRAWN: Final = frozenset({"canvas", "web"})
"""Roles of surfaces whose content is no element."""


class Region(Wire, frozen=True, kw_only=True):
    """A part of the screen with a meaning: an app bar, a list, a dialog, the keyboard, the navigation."""

    kind: str
    bounds: Bounds
    label: str = ""
    elements: tuple[str, ...] = ()


class SemanticScene(Scene, tag="semantic_scene", frozen=True, kw_only=True):
    """A Scene whose regions and dialogs were worked out by rules."""

    regions: tuple[Region, ...] = ()
    dialogs: tuple[Region, ...] = ()
