"""Pictures cut down to what providers see, and points mapped back."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from planner_world import call, element, scene, world

from apex_planner.errors import PictureUnreadable
from apex_planner.fitting import fitted
from apex_planner.grounding import Grounded, Refusal, ground
from apex_planner.prompt import changing_block
from apex_planner.view import LONG_EDGE, MOST_PIXELS, SHORT_EDGE, View, fit
from apex_schemas import actions
from apex_schemas.decision import Picture
from apex_schemas.geometry import Bounds, Point, Size

SCREEN = Size(width=1080, height=2400)
SEEN = Size(width=705, height=1568)
ALL = frozenset({"tap", "swipe"})
BARE = scene(source="screenshot-only")


def picture(width: int, height: int, *, mode: str = "RGB", form: str = "PNG") -> Picture:
    """Four quarters of four colours."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("lime", (width // 2, 0, width, height // 2))
    image.paste("blue", (0, height // 2, width // 2, height))
    image.paste("white", (width // 2, height // 2, width, height))
    data = io.BytesIO()
    image.convert(mode).save(data, form)
    size = Size(width=width, height=height)
    return Picture(data=data.getvalue(), media_type=f"image/{form.lower()}", size=size, sha256="ab" * 32)


@pytest.mark.parametrize(
    ("size", "sent"),
    [
        ((1080, 2400), (705, 1568)),
        ((2400, 1080), (1568, 705)),
        ((1170, 2532), (724, 1568)),
        ((1640, 2360), (768, 1105)),
        ((768, 1366), (768, 1366)),
        ((540, 1200), (540, 1200)),
        ((10, 50_000), (1, 1568)),
    ],
)
def test_a_picture_is_sent_in_a_size_that_no_provider_shrinks(size: tuple[int, int], sent: tuple[int, int]) -> None:
    found = fit(Size(width=size[0], height=size[1]))
    assert (found.width, found.height) == sent


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_no_picture_is_larger_than_the_limits_or_than_it_was(width: int, height: int) -> None:
    found = fit(Size(width=width, height=height))
    assert 1 <= found.width <= width
    assert 1 <= found.height <= height
    assert max(found.width, found.height) <= LONG_EDGE
    assert min(found.width, found.height) <= SHORT_EDGE
    assert found.width * found.height <= MOST_PIXELS
    assert fit(found) == found


@pytest.mark.parametrize(("mode", "form"), [("RGB", "PNG"), ("RGBA", "PNG"), ("P", "PNG"), ("RGB", "JPEG")])
def test_a_large_picture_gets_small_and_shows_the_same(mode: str, form: str) -> None:
    whole = picture(1080, 2400, mode=mode, form=form)
    small = fitted(whole)
    assert (small.size, small.media_type) == (SEEN, "image/jpeg")
    assert (small.sha256, small.original_bytes) == (whole.sha256, len(whole.data))
    with Image.open(io.BytesIO(small.data)) as shown:
        assert shown.size == (705, 1568)
        colours = [shown.getpixel(at) for at in ((100, 200), (600, 200), (100, 1400), (600, 1400))]
    wanted = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]
    for colour, want in zip(colours, wanted, strict=True):
        assert isinstance(colour, tuple)
        assert all(abs(a - b) < 12 for a, b in zip(colour, want, strict=True))


def test_a_small_picture_is_sent_as_it_is() -> None:
    small = picture(540, 1200)
    assert fitted(small) is small


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"<html>", None])
def test_a_picture_that_cannot_be_decoded_is_said(data: bytes | None) -> None:
    whole = picture(1080, 2400)
    broken = Picture(
        data=whole.data[:200] if data is None else data, media_type="image/png", size=SCREEN, sha256="ab" * 32
    )
    with pytest.raises(PictureUnreadable, match="abababababab"):
        fitted(broken)


@given(st.integers(1, 4_000), st.integers(1, 4_000), st.integers(1, 4_000), st.integers(1, 4_000), st.data())
def test_every_point_that_was_seen_lies_on_the_screen_and_near_where_it_should(
    seen_width: int, seen_height: int, width: int, height: int, data: st.DataObject
) -> None:
    x, y = data.draw(st.integers(0, seen_width - 1)), data.draw(st.integers(0, seen_height - 1))
    view = View(Size(width=seen_width, height=seen_height), Size(width=width, height=height))
    at = view.point(x, y)
    assert at is not None
    assert 0 <= at.x < width
    assert 0 <= at.y < height
    assert abs((at.x + 0.5) / width - (x + 0.5) / seen_width) <= 1 / width
    assert view.point(seen_width, y) is None
    assert view.point(x, -1) is None


def test_points_are_mapped_back_per_axis() -> None:
    odd = Size(width=540, height=2400)  # half the width, all of the height
    grounded = ground(call("tap", x=270, y=1200), BARE, ALL, seen=odd)
    assert grounded == Grounded(actions.Tap(at=Point(x=541, y=1200)), None, True)


def test_a_point_in_the_picture_reaches_the_element_that_is_shown_there() -> None:
    box = Bounds(left=900, top=2200, right=1080, bottom=2400)
    page = scene(element(1, "button", "Save", bounds=box), element(2, "button", "Else"))
    grounded = ground(call("tap", x=640, y=1500), page, ALL, seen=SEEN)
    assert isinstance(grounded, Grounded)
    assert grounded.target is not None
    assert grounded.target.label == "Save"
    assert box.contains(grounded.action.at)  # type: ignore[union-attr]


def test_a_swipe_is_mapped_with_both_of_its_ends_and_its_far_edge() -> None:
    given_ends = {"x1": 705, "y1": 1568, "x2": 0, "y2": 0}
    grounded = ground(call("swipe", **given_ends), BARE, ALL, seen=SEEN)
    assert isinstance(grounded, Grounded)
    assert grounded.action == actions.Swipe(start=Point(x=1079, y=2399), end=Point(x=0, y=0))


def test_a_point_outside_of_the_picture_is_refused_in_the_pictures_own_size() -> None:
    refused = ground(call("tap", x=900, y=100), BARE, ALL, seen=SEEN)
    assert isinstance(refused, Refusal)
    assert "which is 705x1568" in refused.fault


def test_the_model_is_told_the_size_of_what_it_sees() -> None:
    assert 'size="705x1568"' in changing_block(BARE, world(), seen=SEEN)
    assert 'size="1080x2400"' in changing_block(BARE, world())
