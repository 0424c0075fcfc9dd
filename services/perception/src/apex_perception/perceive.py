"""A page source and a picture to a Scene: pure, with nothing but values in and a value out.

The steps are in the modules named here, in this order: source, dialects, screen, elements, page, fingerprint.
"""

import msgspec

from apex_perception import dialects, elements, fingerprint, page, picture, screen, source, spaces, webview
from apex_perception.dialects import web
from apex_perception.errors import NothingToSee, NoTree
from apex_perception.geometry import scaled
from apex_perception.nodes import Tree
from apex_perception.screen import Rotation
from apex_schemas.devices import Platform
from apex_schemas.geometry import Size
from apex_schemas.scene import Scene, Screen, SemanticScene

_LITTLE = 3
_LONGEST_APP = 256


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a screen beside its page source.

    `window` is the device's size, in units of the page source or in pixels; `picture` is the size of a screenshot;
    `page` what `page.js` answered in the web context of an app that has one.
    """

    platform: Platform | None = None
    window: Size | None = None
    scale: float | None = None
    rotation: Rotation | None = None
    picture: Size | None = None
    app: str | None = None
    activity: str | None = None
    page: bytes | None = None


def perceive(data: bytes, view: View | None = None) -> Scene:
    """The Scene of a page source, whatever its bytes are.

    Without a readable tree the Scene is screenshot-only, if there is a picture; else NoTree or one of its kinds is
    raised.
    """
    view = view or View()
    try:
        if data.startswith(web.MARK):
            tree, ratio = web.tree(data)
            return _from_tree(tree, msgspec.structs.replace(view, window=None, scale=ratio, picture=None), ())
        read = source.read(data)
    except NoTree as error:
        if view.picture is None:
            raise
        return from_picture(view, str(error))
    tree = dialects.translate(read, view.platform)
    if not tree.nodes and view.picture is not None:
        return from_picture(view, "the tree is empty")
    if view.page is not None:
        tree = webview.merge(tree, view.page)
    return _from_tree(tree, view, read.steps)


def perceive_file(
    data: bytes,
    *,
    platform: Platform | None = None,
    screen: Size | None = None,
    scale: float | None = None,
    screenshot: bytes | None = None,
) -> Scene:
    """What `apex perceive` shows: the Scene of a saved page source, with its picture where there is one.

    Raises NoTree (or a kind of it), PictureUnreadable, and NothingToSee when neither source nor picture is any use.
    """
    size = None
    if screenshot is not None:
        measured = picture.measure(screenshot)
        size = Size(width=measured.width, height=measured.height)
    elif not data:
        raise NothingToSee("the page source is empty", "none given")
    return perceive(data, View(platform=platform, window=screen, scale=scale, picture=size))


def says_little(scene: Scene) -> bool:
    """Whether a picture would tell more than the tree: few named things, or a surface that the tree cannot see into."""
    named = sum(1 for element in scene.elements if element.label or element.value)
    return named < _LITTLE or any(element.role in ("canvas", "web") for element in scene.elements)


def is_bare(scene: Scene) -> bool:
    """Whether nothing on the screen could be used, as on the first screen of an app that starts."""
    return not any(
        element.interactive or element.scrollable or element.role in ("canvas", "web") for element in scene.elements
    )


def _from_tree(tree: Tree, view: View, steps: tuple[str, ...]) -> SemanticScene:
    boxes, mixed = spaces.in_points(tree, view.scale)
    resolved = screen.resolve(
        tree, boxes, window=view.window, scale=view.scale, rotation=view.rotation, picture=view.picture
    )
    if resolved.turn and tree.size is not None:
        boxes = spaces.turned(boxes, tree.size, resolved.turn)
    seen = elements.elements(tree, resolved.screen, scaled(boxes, resolved.factor))
    notes = (*resolved.notes, mixed) if mixed else resolved.notes
    app = (view.app or tree.app or "")[:_LONGEST_APP] or None
    named = page.name(tree, titles=seen.titles, dialog=seen.dialog, activity=view.activity, app=app)
    return SemanticScene(
        app=app,
        page=named,
        screen=resolved.screen,
        elements=seen.elements,
        keyboard=seen.keyboard,
        fingerprint=fingerprint.of(seen.elements, page=named, keyboard=seen.keyboard),
        source="web" if tree.dialect in ("html", "web") else "tree",
        recovered=bool(steps),
        recovery=(*steps, *notes),
        omitted=seen.omitted,
        activity=view.activity,
        regions=seen.regions.regions,
        dialogs=seen.regions.dialogs,
    )


def from_picture(view: View, reason: str) -> Scene:
    """A Scene of which only a picture is had. `view.picture` must be set."""
    assert view.picture is not None
    app = page.app_name(view.app)
    name = f"{app} > screenshot" if app else "screenshot"
    size, scale = view.picture, view.scale or 1.0
    if view.window is not None and view.scale is not None:
        # Acts are divided by this scale, so that points have to be in these pixels, whatever the picture's are.
        size = Size(width=round(view.window.width * scale), height=round(view.window.height * scale))
    elif view.window is not None and view.window.width:
        scale = min(max(view.picture.width / view.window.width, 0.1), 16.0)
    return Scene(
        app=view.app,
        page=name,
        screen=Screen(size=size, scale=scale, rotation=view.rotation or 0),
        source="screenshot-only",
        recovered=True,
        recovery=(reason,),
        activity=view.activity,
    )
