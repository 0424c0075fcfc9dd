"""Where things are: clipping, cover, units, rotation; and the property that every tap point can be tapped."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apex_perception.geometry import area, inside, largest_free, meet
from apex_perception.perceive import View, perceive
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.scene import Element, Scene


def node(text: str, bounds: str | None, inner: str = "", **flags: str) -> str:
    given_ = {"class": "android.widget.Button", "text": text, "clickable": "true", "package": "com.shop.app", **flags}
    if bounds is not None:
        given_["bounds"] = bounds
    written = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in given_.items())
    return f"<node {written}>{inner}</node>"


def box(inner: str, bounds: str = "[0,0][400,800]", **flags: str) -> str:
    return node("", bounds, inner, clickable="false", **{"class": "android.widget.FrameLayout", **flags})


def scene(inner: str, rotation: int = 0, size: str = 'width="400" height="800"', **view: object) -> Scene:
    return perceive(f'<hierarchy rotation="{rotation}" {size}>{inner}</hierarchy>'.encode(), View(**view))  # pyright: ignore[reportArgumentType]


def named(found: Scene, label: str) -> Element:
    return next(element for element in found.elements if element.label == label)


@pytest.mark.parametrize(
    ("bounds", "shown", "obstacle"),
    [
        ("[300,400][100,200]", (100, 200, 300, 400), None),
        ("[-50,10][60,40]", (0, 10, 60, 40), None),
        ("[350,790][500,900]", (350, 790, 400, 800), None),
        ("[10,900][60,950]", (10, 900, 60, 950), "off_screen"),
        ("[10,10][10,40]", (10, 10, 10, 40), "off_screen"),
        (None, None, "no_bounds"),
        ("nonsense", None, "no_bounds"),
        ("[0,0][999999999,5]", (0, 0, 400, 5), None),
    ],
)
def test_bounds_are_put_right_clipped_or_said_to_be_out_of_reach(
    bounds: str | None, shown: tuple[int, int, int, int] | None, obstacle: str | None
) -> None:
    element = named(scene(box(node("x", bounds))), "x")
    assert element.obstacle == obstacle
    assert (element.tap_point is None) == (obstacle is not None)
    found = element.bounds
    assert (None if found is None else (found.left, found.top, found.right, found.bottom)) == shown


def test_a_child_is_seen_only_inside_its_ancestors() -> None:
    found = scene(box(node("in", "[0,90][400,300]") + node("out", "[0,300][400,400]"), "[0,100][400,200]"))
    assert named(found, "in").bounds == Bounds(left=0, top=100, right=400, bottom=200)
    assert named(found, "out").obstacle == "off_screen"


def test_a_later_sibling_covers_and_what_is_left_is_tapped() -> None:
    found = scene(box(node("under", "[0,0][400,100]") + node("over", "[100,0][400,100]")))
    assert named(found, "under").tap_point == Point(x=50, y=50)
    assert named(found, "over").tap_point == Point(x=250, y=50)


def test_what_is_wholly_covered_is_occluded_and_the_paint_order_decides_by_what() -> None:
    first, second = node("a", "[0,0][99,99]", drawing_order="2"), node("b", "[0,0][99,99]", drawing_order="1")
    found = scene(box(first + second))
    assert named(found, "a").obstacle is None
    assert named(found, "b").obstacle == "occluded"


def test_descendants_never_cover_and_their_ancestor_is_tapped_beside_them() -> None:
    row = node("row", "[0,0][400,100]", node("inner", "[100,0][400,100]"))
    found = scene(box(row))
    assert named(found, "row").tap_point == Point(x=50, y=50)
    full = scene(box(node("row", "[0,0][400,100]", node("inner", "[0,0][400,100]"))))
    assert named(full, "row").obstacle is None


def test_a_dialog_window_shuts_off_the_page_below_it_whichever_root_comes_first() -> None:
    page, dialog = box(node("page", "[0,0][400,100]")), box(node("OK", "[60,400][340,450]"), "[40,300][360,500]")
    for roots in (page + dialog, dialog + page):
        found = scene(roots)
        assert named(found, "page").obstacle == "occluded"
        assert named(found, "OK").tap_point == Point(x=200, y=425)
        assert found.screen.size == Size(width=400, height=800)


def test_the_keyboard_is_known_covers_and_its_keys_are_counted() -> None:
    ime = "com.android.inputmethod.latin"
    keys = "".join(node(letter, f"[{n * 40},700][{n * 40 + 40},800]", package=ime) for n, letter in enumerate("qwert"))
    found = scene(box(node("Save", "[0,700][400,760]")) + box(keys, "[0,600][400,800]", package=ime))
    assert found.keyboard is not None
    assert found.keyboard.bounds == Bounds(left=0, top=600, right=400, bottom=800)
    assert named(found, "Save").obstacle == "occluded"
    assert (found.keyboard.keys, found.omitted) == (5, 0)


@pytest.mark.parametrize(("rotation", "degrees"), [(0, 0), (1, 90), (2, 180), (3, 270)])
def test_each_rotation_has_the_size_that_the_nodes_show(rotation: int, degrees: int) -> None:
    bounds = "[0,0][800,400]" if rotation % 2 else "[0,0][400,800]"
    found = scene(box("", bounds), rotation, window=Size(width=400, height=800))
    assert found.screen.rotation == degrees
    assert found.screen.size == (Size(width=800, height=400) if rotation % 2 else Size(width=400, height=800))


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_points_become_pixels_by_what_the_picture_shows(factor: int) -> None:
    cell = '<XCUIElementTypeCell label="General" x="0" y="100" width="375" height="44"/>'
    app = (
        f'<XCUIElementTypeApplication name="S" x="0" y="0" width="375" height="667">{cell}</XCUIElementTypeApplication>'
    )
    picture = Size(width=375 * factor, height=667 * factor)
    for view in (
        View(picture=picture),
        View(window=Size(width=375, height=667), scale=factor),
        View(window=picture, scale=factor),
    ):
        found = perceive(f"<AppiumAUT>{app}</AppiumAUT>".encode(), view)
        assert found.screen.size == picture
        assert found.elements[0].tap_point == Point(x=375 * factor // 2, y=(100 * factor + 144 * factor) // 2)


def test_an_ios_alert_shuts_off_its_window_though_all_of_it_says_invisible() -> None:
    button = '<XCUIElementTypeButton label="{}" visible="{}" x="20" y="{}" width="100" height="40"/>'
    frame = 'x="0" y="0" width="375" height="667"'
    alert = '<XCUIElementTypeAlert label="Allow?" x="10" y="280" width="300" height="200">{}</XCUIElementTypeAlert>'
    source = (
        f'<AppiumAUT><XCUIElementTypeApplication name="A" {frame}>'
        f'<XCUIElementTypeWindow visible="false" {frame}>{button.format("Below", "false", 20)}</XCUIElementTypeWindow>'
        f"<XCUIElementTypeWindow {frame}>{alert.format(button.format('OK', 'true', 300))}</XCUIElementTypeWindow>"
        "</XCUIElementTypeApplication></AppiumAUT>"
    )
    found = perceive(source.encode())
    assert named(found, "Below").obstacle == "occluded"
    assert named(found, "OK").tap_point == Point(x=70, y=320)
    assert found.page == "A > Allow?"


def test_an_ios_button_that_says_invisible_but_lies_free_can_be_tapped() -> None:
    source = (
        '<AppiumAUT><XCUIElementTypeApplication x="0" y="0" width="375" height="667">'
        '<XCUIElementTypeButton label="Go" visible="false" enabled="true" x="0" y="0" width="50" height="50"/>'
        "</XCUIElementTypeApplication></AppiumAUT>"
    )
    assert perceive(source.encode()).elements[0].tap_point == Point(x=25, y=25)


_SIDE = st.integers(-100, 900)
_BOX = st.tuples(_SIDE, _SIDE, _SIDE, _SIDE)


def _write(tree: tuple[tuple[int, int, int, int], bool, list[object]], path: str = "n") -> str:
    (left, top, right, bottom), acts, inner = tree
    below = "".join(_write(each, f"{path}.{n}") for n, each in enumerate(inner))  # pyright: ignore[reportArgumentType]
    return node(path, f"[{left},{top}][{right},{bottom}]", below, clickable=str(acts).lower())


_TREES = st.recursive(
    st.tuples(_BOX, st.booleans(), st.just([])),
    lambda inner: st.tuples(_BOX, st.booleans(), st.lists(inner, max_size=4)),
    max_leaves=25,
)


@settings(max_examples=200, deadline=20_000)
@given(_TREES)
def test_every_tap_point_lies_on_the_screen_in_its_element_and_under_no_later_sibling(tree: object) -> None:
    found = scene(_write(tree), size='width="400" height="800"')  # pyright: ignore[reportArgumentType]
    check_tap_points(found)


def check_tap_points(found: Scene) -> None:
    """Document order is paint order here: a later acting element that is no descendant must not hold the point."""
    for index, element in enumerate(found.elements):
        assert (element.tap_point is None) == (element.obstacle is not None)
        if element.tap_point is None or element.bounds is None:
            continue
        size = found.screen.size
        assert Bounds(left=0, top=0, right=size.width, bottom=size.height).contains(element.tap_point)
        assert element.bounds.contains(element.tap_point)
        for later in found.elements[index + 1 :]:
            covers = later.interactive and later.bounds is not None and not is_inside(found, later, element)
            assert not (covers and later.obstacle != "off_screen" and later.bounds.contains(element.tap_point))


def is_inside(found: Scene, element: Element, other: Element) -> bool:
    parent = element.parent
    while parent is not None:
        if parent == other.id:
            return True
        above = found.element(parent)
        parent = above.parent if above else None
    return False


@settings(max_examples=200)
@given(_BOX, st.lists(_BOX, max_size=6))
def test_the_largest_free_rectangle_is_free_inside_and_no_smaller_than_any_strip(
    raw: tuple[int, int, int, int], others: list[tuple[int, int, int, int]]
) -> None:
    def right(one: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        return min(one[0], one[2]), min(one[1], one[3]), max(one[0], one[2]) + 1, max(one[1], one[3]) + 1

    whole, covers = right(raw), [right(other) for other in others]
    free = largest_free(whole, covers)
    if free is None:
        corners = [(x, y) for x in (whole[0], whole[2] - 1) for y in (whole[1], whole[3] - 1)]
        assert all(any(meet((x, y, x + 1, y + 1), cover) for cover in covers) for x, y in corners)
        return
    assert inside(free, whole)
    assert not any(meet(free, cover) for cover in covers)
    strips = [(whole[0], whole[1], min(c[0] for c in covers), whole[3])] if covers else [whole]
    assert all(area(free) >= area(strip) for strip in strips if strip[2] <= whole[2])
