"""One space for all places: rotations, units, cut-outs, split screens and windows (rows 7, 15, 16, 18)."""

import pytest

from apex_perception.perceive import View, perceive
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.scene import Element, Scene


def app(inner: str, width: int = 375, height: int = 667) -> bytes:
    frame = f'<XCUIElementTypeApplication name="A" x="0" y="0" width="{width}" height="{height}">'
    return f"<AppiumAUT>{frame}{inner}</XCUIElementTypeApplication></AppiumAUT>".encode()


def tag(kind: str, x: int, y: int, width: int, height: int, inner: str = "", label: str = "") -> str:
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<XCUIElementType{kind} label="{label}" {place}>{inner}</XCUIElementType{kind}>'


PICTURE = Size(width=1334, height=750)
GO = tag("Button", 10, 20, 100, 40, label="Go")


def named(scene: Scene, label: str) -> Element:
    return next(element for element in scene.elements if element.label == label)


@pytest.mark.parametrize(
    ("view", "place"),
    [
        (View(window=Size(width=667, height=375), rotation=90, scale=2), (40, 530, 120, 730)),
        (View(window=Size(width=667, height=375), rotation=270, scale=2), (1214, 20, 1294, 220)),
        (View(picture=PICTURE), (40, 530, 120, 730)),
        (View(window=Size(width=375, height=667), rotation=90, picture=PICTURE), (40, 530, 120, 730)),
    ],
)  # fmt: skip
def test_places_of_an_upright_iphone_are_turned_as_its_screen_is(view: View, place: tuple[int, int, int, int]) -> None:
    scene = perceive(app(GO), view)
    left, top, right, bottom = place
    assert scene.elements[0].bounds == Bounds(left=left, top=top, right=right, bottom=bottom)
    assert scene.screen.size == PICTURE
    assert any("upright" in step for step in scene.recovery)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_places_that_are_turned_already_stay_as_they_are(rotation: int) -> None:
    width, height = (667, 375) if rotation % 180 else (375, 667)
    view = View(window=Size(width=width, height=height), rotation=rotation, scale=2)  # pyright: ignore[reportArgumentType]
    scene = perceive(app(GO, width, height), view)
    assert scene.elements[0].bounds == Bounds(left=20, top=40, right=220, bottom=120)
    assert (scene.screen.rotation, scene.screen.size) == (rotation, Size(width=2 * width, height=2 * height))


@pytest.mark.parametrize("scale", [2, 3])
@pytest.mark.parametrize("known", [True, False])
def test_a_view_in_pixels_among_points_is_brought_to_points(scale: int, known: bool) -> None:
    link = tag("Link", 10 * scale, 110 * scale, 100 * scale, 30 * scale, label="Terms")
    page = tag("WebView", 0, 100 * scale, 375 * scale, 567 * scale, link)
    picture = Size(width=375 * scale, height=667 * scale)
    view = View(window=Size(width=375, height=667), scale=scale) if known else View(picture=picture)
    scene = perceive(app(GO + tag("Other", 0, 100, 375, 567, page)), view)
    right, bottom = 110 * scale, 140 * scale
    assert named(scene, "Terms").bounds == Bounds(left=10 * scale, top=110 * scale, right=right, bottom=bottom)
    assert named(scene, "Go").tap_point == Point(x=60 * scale, y=40 * scale)
    assert any("pixels" in step for step in scene.recovery)


@pytest.mark.parametrize("far", ["1e308", "9" * 400, "9" * 5_000, "nan", "-1e999", "12_0", " 7 ", ""])
def test_a_place_that_is_no_number_or_too_far_away_costs_no_scene(far: str) -> None:
    cell = f'<XCUIElementTypeCell label="Odd" x="{far}" y="0" width="10" height="{far}"/>'
    scene = perceive(app(GO + cell), View(window=Size(width=375, height=667), scale=3))
    assert named(scene, "Go").tap_point == Point(x=180, y=120)
    assert len(scene.elements) == 2


def test_a_long_page_in_points_is_not_taken_for_pixels() -> None:
    row = tag("Cell", 0, 900, 375, 44, label="Further down")
    scene = perceive(app(tag("Table", 0, 0, 375, 2001, row)), View(window=Size(width=375, height=667), scale=3))
    assert named(scene, "Further down").obstacle == "off_screen"


def window(inner: str, bounds: str, package: str = "com.shop.app") -> str:
    return f'<node class="android.widget.FrameLayout" package="{package}" bounds="{bounds}">{inner}</node>'


def button(text: str, bounds: str, package: str = "com.shop.app") -> str:
    return f'<node class="android.widget.Button" package="{package}" text="{text}" clickable="true" bounds="{bounds}"/>'


def android(windows: str, width: int, height: int) -> Scene:
    return perceive(f"<hierarchy>{windows}</hierarchy>".encode(), View(window=Size(width=width, height=height)))


def test_an_app_beside_a_cut_out_keeps_the_places_of_the_whole_screen() -> None:
    scene = android(window(button("Go", "[96,0][396,100]"), "[96,0][2400,1080]"), 2400, 1080)
    assert scene.screen.size == Size(width=2400, height=1080)
    assert named(scene, "Go").tap_point == Point(x=246, y=50)


def test_both_halves_of_a_split_screen_can_be_touched() -> None:
    upper = window(button("Up", "[0,0][300,100]"), "[0,0][1080,1190]")
    lower = window(button("Down", "[0,1210][300,1310]", "org.notes"), "[0,1210][1080,2400]", "org.notes")
    scene = android(upper + lower, 1080, 2400)
    assert named(scene, "Up").tap_point == Point(x=150, y=50)
    assert named(scene, "Down").tap_point == Point(x=150, y=1260)
    assert scene.screen.size == Size(width=1080, height=2400)


def test_a_small_window_over_an_app_covers_what_is_below_it_alone() -> None:
    page = window(button("Under", "[700,1800][1000,1900]") + button("Beside", "[0,0][300,100]"), "[0,0][1080,2400]")
    video = window(button("Pause", "[650,1750][1050,1950]", "org.video"), "[650,1750][1050,1950]", "org.video")
    scene = android(page + video, 1080, 2400)
    assert named(scene, "Under").obstacle == "occluded"
    assert named(scene, "Beside").obstacle is None
    assert named(scene, "Pause").obstacle is None
