"""One observation of a phone that is made up: what is read, how often, and what is asked of it (rows 1, 8, 10, 13)."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from apex_perception.errors import NothingToSee, SourceUnavailable
from apex_perception.screen import Rotation
from apex_perception.settings import PerceptionSettings
from apex_perception.settle import Observation, Observer
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Size
from apex_schemas.scene import Scene

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\x90\0\0\3\x20"


def tree(*labels: str, web: bool = False) -> bytes:
    inner = "".join(
        f'<node class="android.widget.Button" text="{label}" clickable="true" bounds="[0,{y}][400,{y + 40}]"/>'
        for y, label in zip(range(0, 400, 50), labels, strict=False)
    )
    if web:
        inner += '<node class="android.webkit.WebView" package="org.shop" bounds="[0,400][400,800]"/>'
    return f'<hierarchy><node package="org.shop" bounds="[0,0][400,800]">{inner}</node></hierarchy>'.encode()


LINK = {"parent": -1, "kind": "link", "name": "Terms", "acts": True, "box": [10, 10, 60, 30], "tap": [35, 20]}
PAGE = msgspec.json.encode({"apex": "web", "width": 200, "height": 200, "ratio": 2, "nodes": [LINK]})


class Phone:
    """Gives the sources in turn, the last for ever; an exception among them is raised."""

    def __init__(self, *sources: bytes | Exception, page: bytes | None = None, picture: bytes | None = PNG) -> None:
        self.sources, self.answer, self.shot = list(sources), page, picture
        self.asked: list[str] = []
        self.deep: Callable[[], bool] = lambda: False

    def source(self) -> bytes:
        self.asked.append("source")
        found = self.sources.pop(0) if len(self.sources) > 1 else self.sources[0]
        if isinstance(found, Exception):
            raise found
        return found

    def screenshot(self) -> bytes:
        self.asked.append("picture")
        if self.shot is None:
            raise SourceUnavailable("screenshot", "secure window")
        return self.shot

    def window(self) -> Size:
        return Size(width=400, height=800)

    def rotation(self) -> Rotation | None:
        return None

    def wake(self) -> None:
        self.asked.append("wake")

    def page(self, app: str | None) -> bytes | None:
        self.asked.append(f"page of {app}")
        return self.answer

    def look_deeper(self) -> bool:
        return self.deep()

    def close(self) -> None:
        self.asked.append("close")


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def observe(threads: ThreadPoolExecutor) -> Callable[..., Observation]:
    def run(phone: Phone, *, cap: float = 5.0, **before: object) -> Observation:
        settings = PerceptionSettings(settle_seconds=cap)
        observer = Observer(phone, SessionHandle(id="s", url="u"), settings, threads)
        return asyncio.run(observer.observe(**before))  # pyright: ignore[reportArgumentType]

    return run


BUSY = tree("One", "Two", "Three", "Four")
REFUSED = SourceUnavailable("page source", "Illegal character (d83d)")


def labels(scene: Scene) -> list[str]:
    return [element.label for element in scene.elements]


def test_a_still_screen_is_read_twice_and_no_picture_is_taken(observe: Callable[..., Observation]) -> None:
    phone = Phone(BUSY)
    seen = observe(phone)
    assert seen.scene.settled
    assert phone.asked == ["source", "source"]


def test_a_screen_that_moves_is_read_until_it_stands(observe: Callable[..., Observation]) -> None:
    phone = Phone(tree("a", "b", "c"), tree("a", "b", "d"), BUSY)
    seen = observe(phone)
    assert seen.scene.settled
    assert labels(seen.scene) == ["One", "Two", "Three", "Four"]
    assert phone.asked.count("source") == 4


def test_at_the_cap_a_screen_that_moves_is_told_as_unsettled(observe: Callable[..., Observation]) -> None:
    seen = observe(Phone(*(tree("a", "b", f"c{n}x") for n in range(500))), cap=0.2)
    assert not seen.scene.settled


def test_a_refused_source_is_asked_for_again_the_screen_woken_once(observe: Callable[..., Observation]) -> None:
    phone = Phone(REFUSED, b"ERROR: null root node returned by UiTestAutomationBridge.", BUSY)
    seen = observe(phone)
    assert seen.scene.source == "tree"
    assert phone.asked.count("wake") == 1


def test_a_phone_without_a_tree_is_seen_by_its_picture_and_says_why(observe: Callable[..., Observation]) -> None:
    seen = observe(Phone(REFUSED))
    assert seen.scene.source == "screenshot-only"
    assert seen.picture == PNG
    assert "Illegal character" in seen.scene.recovery[0]


def test_with_neither_tree_nor_picture_there_is_nothing_to_see(observe: Callable[..., Observation]) -> None:
    with pytest.raises(NothingToSee):
        observe(Phone(REFUSED, picture=None))


def test_the_depth_is_raised_once_when_a_screen_says_little(observe: Callable[..., Observation]) -> None:
    phone = Phone(tree())

    def deeper() -> bool:
        first = phone.sources == [tree()]
        phone.sources = [BUSY]
        return first

    phone.deep = deeper
    assert labels(observe(phone).scene) == ["One", "Two", "Three", "Four"]
    assert "picture" not in phone.asked


def test_a_page_in_an_app_is_asked_for_by_its_package_and_takes_its_place(observe: Callable[..., Observation]) -> None:
    phone = Phone(tree("One", "Two", "Three", web=True), page=PAGE)
    scene = observe(phone).scene
    assert labels(scene) == ["One", "Two", "Three", "Terms"]
    assert scene.elements[3].context == "web"
    assert "page of org.shop" in phone.asked
    bare = observe(Phone(tree("One", "Two", "Three", web=True))).scene
    assert [element.role for element in bare.elements][-1] == "web"


def test_an_unchanged_screen_after_an_act_is_given_its_time(observe: Callable[..., Observation]) -> None:
    before = observe(Phone(BUSY)).scene.fingerprint
    seen = observe(Phone(BUSY), before=before, patience_s=0.15)
    assert seen.scene.observe_ms >= 150
    later = observe(Phone(BUSY, BUSY, tree("Done", "b", "c")), before=before, patience_s=30.0)
    assert labels(later.scene)[0] == "Done"
    assert later.scene.observe_ms < 25_000
