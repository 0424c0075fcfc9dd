"""A Scene as people are shown it, in place of the picture, which stays with perception and the planner.

Pure: a Scene in; places, roles and labels out, cut to a size that can be kept for every turn, and never what a
password field holds. The decision-log keeps it, the command draws it.
"""

from typing import Final

from apex_schemas.queries import SceneBox, TimelineScene
from apex_schemas.scene import Scene

MOST_BOXES: Final = 400
LONGEST_LABEL: Final = 200


def wireframe(scene: Scene) -> TimelineScene:
    """What lies on the screen, in its order; what has no place on it is counted alone."""
    boxes = [
        SceneBox(
            element=element.id,
            role=element.role,
            bounds=element.bounds,
            label=element.label[:LONGEST_LABEL],
            value=None if element.password or element.value is None else element.value[:LONGEST_LABEL],
            interactive=element.interactive,
            enabled=element.enabled,
            checked=element.checked,
            focused=element.focused,
            obstacle=element.obstacle,
        )
        for element in scene.elements
        if element.bounds is not None and element.bounds.area and element.obstacle != "off_screen"
    ]
    return TimelineScene(
        width=scene.screen.size.width,
        height=scene.screen.size.height,
        app=scene.app,
        source=scene.source,
        settled=scene.settled,
        elements=len(scene.elements),
        omitted=scene.omitted,
        keyboard=scene.keyboard.bounds if scene.keyboard else None,
        boxes=tuple(boxes[:MOST_BOXES]),
        screenshot_sha256=scene.screenshot.sha256 if scene.screenshot else None,
    )
