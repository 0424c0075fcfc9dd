"""Recorded page sources, as they are and damaged: sound Scenes, complete and small texts, no crash, no hang."""

import json
import time
from pathlib import Path
from xml.etree import ElementTree

import components
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apex_perception.errors import PerceptionError
from apex_perception.geometry import largest_free
from apex_perception.perceive import perceive
from apex_planner.scene_text import write_scene
from apex_schemas.geometry import Bounds
from apex_schemas.scene import Element, Scene

DUMPS = sorted(components.DUMPS.glob("*.xml"))
by_dump = pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
MOST_BYTES = 1_600
"""Of one screen's text; some 400 tokens."""


def is_inside(scene: Scene, element: Element, other: Element) -> bool:
    parent = element.parent
    while parent is not None and parent != other.id:
        above = scene.element(parent)
        parent = above.parent if above else None
    return parent is not None


def check(scene: Scene) -> None:
    """Each tap point lies on the screen, in its element, and in what is left of it free by what acts above it."""
    size = scene.screen.size
    whole = Bounds(left=0, top=0, right=size.width, bottom=size.height)
    for element in scene.elements:
        assert (element.tap_point is None) == (element.obstacle is not None)
        if element.tap_point is None or element.bounds is None:
            continue
        assert whole.contains(element.tap_point)
        assert element.bounds.contains(element.tap_point)
        inner = [
            (box.left, box.top, box.right, box.bottom)
            for other in scene.elements
            if other.interactive and is_inside(scene, other, element) and (box := other.bounds) is not None
            and other.obstacle is None
        ]  # fmt: skip
        box = element.bounds
        free = largest_free((box.left, box.top, box.right, box.bottom), inner)
        if free is not None and element.interactive:
            assert not any(
                left <= element.tap_point.x < right and top <= element.tap_point.y < bottom
                for left, top, right, bottom in inner
            )


@by_dump
def test_tap_points_lie_in_what_is_free_of_each_element(dump: Path) -> None:
    check(perceive(dump.read_bytes()))


@by_dump
def test_every_element_that_can_be_touched_is_in_the_text_which_is_small(dump: Path) -> None:
    scene = perceive(dump.read_bytes())
    text = write_scene(scene)
    lines = [line.split() for line in text.split("\n")]
    listed = {words[0] for words in lines if words}
    assert {element.id for element in scene.elements if element.interactive} <= listed
    if dump.stem[:3] not in ("011", "019"):  # a form that runs on below the screen; texts of escaped bytes
        assert len(text.encode()) <= MOST_BYTES


@by_dump
def test_every_visible_label_is_in_the_text(dump: Path) -> None:
    data = dump.read_bytes()
    if b"XCUIElementType" in data or b"hierarchy" not in data:
        return
    said = " ".join(json.dumps(write_scene(perceive(data)), ensure_ascii=False).replace("\\", "").split())
    for node in ElementTree.fromstring(data).iter():
        words = " ".join((node.get("text") or node.get("content-desc") or "").split())
        if words and node.get("password") != "true" and "[0,0][0,0]" not in node.get("bounds", ""):
            assert words[:60].replace("\\", "") in said, words


def test_the_same_bytes_give_the_same_scene_whatever_was_read_before() -> None:
    components.dumps()
    first = [perceive(dump.read_bytes()) for dump in DUMPS]
    assert [perceive(dump.read_bytes()) for dump in reversed(DUMPS)] == list(reversed(first))


_PIECES = [
    b"<", b'"', b"&", b"\0", b"&#55357;", b"\xff\xfe", b"]]>", b"<!--", b"-->", b"/>", b"[", b"<a>", b"\r\r\n",
    b'bounds="[9,9][1,1]"', b'bounds="[-9,-9][99999999,99999999]"', b"</hierarchy>",
]  # fmt: skip
_DAMAGE = st.lists(
    st.one_of(
        st.tuples(st.just("cut"), st.floats(0, 1), st.floats(0, 0.2)),
        st.tuples(st.just("twice"), st.floats(0, 1), st.floats(0, 0.2)),
        st.tuples(st.just("put"), st.floats(0, 1), st.sampled_from(_PIECES)),
    ),
    min_size=1, max_size=4,
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_damaged_source_gives_a_sound_scene_or_a_typed_error_in_bounded_time(data: st.DataObject) -> None:
    components.dumps()
    source = data.draw(st.sampled_from(DUMPS)).read_bytes()
    for kind, at, what in data.draw(_DAMAGE):
        start = int(at * len(source))
        if isinstance(what, bytes):
            source = source[:start] + what + source[start:]
        else:
            end = start + int(what * len(source))
            source = source[:start] + source[end:] if kind == "cut" else source[:end] + source[start:end] + source[end:]
    begun = time.process_time()
    try:
        scene = perceive(source)
    except PerceptionError:
        scene = None
    assert time.process_time() - begun < 15.0
    if scene is not None:
        check(scene)
        write_scene(scene)
