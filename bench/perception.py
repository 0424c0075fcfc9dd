"""What a Scene costs and holds: milliseconds by size of the page source, tokens and completeness on recorded screens.

    (cd bench && npm ci) && python bench/perception.py [--dumps FOLDER] [--rounds 60] [--json FILE]

Time is processor time of this process, so that a busy machine does not count. Sources of 100 to 4,000 nodes are made in
two shapes: a grid that is all on the screen, and a list that runs on below it. Screens are page sources recorded by
others (../shared/dumps where present). What is visible, interactive and readable in them is worked out here from the
XML alone, so that perception does not check itself; tokens are o200k_base, as the peers were counted.
"""

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

from tokens import token_ids

from apex_perception.perceive import perceive
from apex_planner.scene_text import has_id, write_scene
from apex_schemas.scene import Element, Scene

SIZES: Final = (100, 300, 1_000, 4_000)
LIMIT_MS: Final = {300: 4.0, 4_000: 60.0}
GROWTH: Final = 1.5
"""How much more a node may cost in the largest source than in one of 300: linear growth is 1."""
PEERS: Final = "peers on these screens: median 1,186 to 8,038 tokens, 115 to 733 for each interactive element"
_BOUNDS: Final = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
_IOS_ACTING: Final = frozenset(
    ("Button", "Cell", "TextField", "SecureTextField", "SearchField", "TextView", "Switch", "Slider", "Link",
     "PopUpButton", "PickerWheel")
)  # fmt: skip
_SWITCHES: Final = frozenset(("switch", "checkbox", "radio"))

Box = tuple[int, int, int, int]


class Seen(NamedTuple):
    """What the XML says: boxes of visible nodes that act (and whether they take touches), and visible texts."""

    acting: list[tuple[Box, bool]]
    labels: set[str]


class Screen(NamedTuple):
    name: str
    tokens: int
    listed: int
    acting: int
    missed: int
    labels: int
    absent: list[str]
    counted: int


def source(nodes: int, *, grid: bool) -> bytes:
    """A settings screen of about so many nodes, each with the attributes that UiAutomator2 gives it."""
    rows = (nodes - 2) // 6
    columns = 6 if grid else 1
    wide, high = 1080 // columns, max(6, 2200 // -(-rows // columns)) if grid else 160
    body = "".join(_row(n, n % columns * wide, 200 + n // columns * high, wide, high) for n in range(rows))
    whole = _view("FrameLayout", 0, 0, 1080, 2400, _view("RecyclerView", 0, 200, 1080, 2400, body, scrollable="true"))
    return (
        f'<hierarchy index="0" class="hierarchy" rotation="0" width="1080" height="2400">{whole}</hierarchy>'.encode()
    )


def _row(number: int, x: int, y: int, wide: int, high: int) -> str:
    def at(left: float, top: float, right: float, bottom: float) -> tuple[int, int, int, int]:
        return x + int(left * wide), y + int(top * high), x + int(right * wide), y + int(bottom * high)

    texts = _view("TextView", *at(0.2, 0.1, 0.8, 0.5), text=f"Row {number} title", rid="title") + _view(
        "TextView", *at(0.2, 0.5, 0.8, 0.9), text=f"Summary of row {number}", rid="summary"
    )
    inside = (
        _view("ImageView", *at(0.02, 0.2, 0.15, 0.8), rid="icon")
        + _view("RelativeLayout", *at(0.2, 0, 0.8, 1), texts)
        + _view("Switch", *at(0.85, 0.2, 0.98, 0.8), rid="switch_widget", checkable="true")
    )
    return _view("LinearLayout", *at(0, 0, 1, 1), inside, clickable="true")


def _view(
    cls: str, left: int, top: int, right: int, bottom: int, inside: str = "", *, text: str = "", rid: str = "",
    clickable: str = "false", checkable: str = "false", scrollable: str = "false",
) -> str:  # fmt: skip
    name = f"android.widget.{cls}"
    return (
        f'<{name} index="1" package="com.android.settings" class="{name}" text="{text}" resource-id="android:id/{rid}"'
        f' checkable="{checkable}" checked="false" clickable="{clickable}" enabled="true" focusable="{clickable}"'
        f' focused="false" long-clickable="false" password="false" scrollable="{scrollable}" selected="false"'
        f' bounds="[{left},{top}][{right},{bottom}]" displayed="true" showing-hint="false"'
        f' drawing-order="1">{inside}</{name}>'
    )


def times(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and 99th percentile in milliseconds of processor time."""
    work()
    taken: list[float] = []
    for _ in range(rounds):
        begun = time.process_time_ns()
        work()
        taken.append((time.process_time_ns() - begun) / 1e6)
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


def seen(data: bytes) -> Seen:
    """What a person would find on the screen, by the XML's own words."""
    root = ElementTree.fromstring(data)
    found = Seen([], set())
    for node in root:
        _look(node, (-(10**6), -(10**6), 10**6, 10**6), found)
    return found


def _look(node: ElementTree.Element, limit: Box, found: Seen) -> None:
    box = _box(node)
    part = limit if box is None else _meet(box, limit)
    if box is not None and part is not None and _shown(node):
        acts, takes = _acts(node)
        if acts:
            found.acting.append((part, takes))
        if node.get("password") != "true" and "Secure" not in node.tag:
            found.labels.update(_words(node))
    if part is not None:
        for child in node:
            _look(child, part, found)


def _box(node: ElementTree.Element) -> Box | None:
    if (bounds := _BOUNDS.fullmatch(node.get("bounds", ""))) is not None:
        left, top, right, bottom = map(int, bounds.groups())
        return left, top, right, bottom
    try:
        x, y, wide, high = (int(node.attrib[name]) for name in ("x", "y", "width", "height"))
    except (KeyError, ValueError):
        return None
    return x, y, x + wide, y + high


def _meet(one: Box, other: Box) -> Box | None:
    box = max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])
    return box if box[0] < box[2] and box[1] < box[3] else None


def _shown(node: ElementTree.Element) -> bool:
    return node.get("displayed") != "false" and node.get("visible") != "false"


def _acts(node: ElementTree.Element) -> tuple[bool, bool]:
    """Whether it is interactive, and whether it takes touches itself."""
    if node.tag.startswith("XCUIElementType"):
        acts = node.tag.removeprefix("XCUIElementType") in _IOS_ACTING
        return acts, acts
    takes = node.get("clickable") == "true" or node.get("long-clickable") == "true"
    return takes or node.get("checkable") == "true" or "EditText" in node.get("class", node.tag), takes


def _words(node: ElementTree.Element) -> Iterator[str]:
    names = ("label", "value") if node.tag.startswith("XCUIElementType") else ("text", "content-desc")
    if node.tag.removeprefix("XCUIElementType") in ("Application", "Window", "Other", "ScrollView", "Table"):
        return  # named for developers, or by all that lies inside
    for name in names:
        words = " ".join(node.get(name, "").split())
        if words and words not in ("0", "1") and any(map(str.isalnum, words)):
            yield words


def measure(name: str, data: bytes) -> tuple[str, Callable[[int], Screen]]:
    """The prompt text of a screen, and what is known of it once its tokens are counted."""
    scene, found = perceive(data), seen(data)
    text = write_scene(scene)
    listed = [element for element in scene.elements if has_id(element) and element.bounds is not None]
    missed = sum(1 for box, takes in found.acting if not _is_listed(box, listed, scene, takes=takes))
    read = " ".join(json.loads(f'"{text.translate({10: 32, 34: 32, 92: 32})}"', strict=False).split())
    absent = sorted(label for label in found.labels if _plain(label)[:60] not in _plain(read))
    interactive = sum(1 for element in scene.elements if element.interactive)
    return text, lambda tokens: Screen(
        name, tokens, interactive, len(found.acting), missed, len(found.labels), absent, scene.omitted
    )


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def _is_listed(box: Box, listed: list[Element], scene: Scene, *, takes: bool) -> bool:
    """By an element in its place; what shows the state of a row by that row."""
    scale = scene.screen.scale
    pixels = tuple(side * scale for side in box)
    for element in listed:
        bounds = element.bounds
        assert bounds is not None
        wide = min(pixels[2], bounds.right) - max(pixels[0], bounds.left)
        high = min(pixels[3], bounds.bottom) - max(pixels[1], bounds.top)
        common = max(0.0, wide) * max(0.0, high)
        own = (pixels[2] - pixels[0]) * (pixels[3] - pixels[1])
        if common >= 0.5 * (own + bounds.area - common) or (not takes and common == own and element.role in _SWITCHES):
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[2] / "shared" / "dumps"
    parser.add_argument("--dumps", type=Path, default=default, help="a folder of page sources (*.xml)")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    given = parser.parse_args()
    figures = {"speed": speed(given.rounds), "screens": screens(given.dumps)}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")


def speed(rounds: int) -> dict[str, dict[int, tuple[float, float]]]:
    print("processor time, ms   nodes     p50     p99   µs/node")
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for shape in ("grid", "list"):
        found[shape] = {}
        for nodes in SIZES:
            data = source(nodes, grid=shape == "grid")
            p50, p99 = times(lambda data=data: perceive(data), max(10, rounds * 300 // max(nodes, 300)))
            found[shape][nodes] = p50, p99
            print(f"{shape:<20} {nodes:>6}  {p50:>6.2f}  {p99:>6.2f}  {p50 / nodes * 1_000:>7.1f}")
    for nodes, limit in LIMIT_MS.items():
        worst = max(each[nodes][0] for each in found.values())
        print(f"{nodes} nodes: {worst:.2f} ms (at most {limit:g}: {'met' if worst <= limit else 'MISSED'})")
    growth = max(each[4_000][0] / 4_000 / (each[300][0] / 300) for each in found.values())
    print(f"growth from 300 to 4,000: {growth:.2f} (at most {GROWTH:g}: {'met' if growth <= GROWTH else 'MISSED'})")
    return found


def screens(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.glob("*.xml"))
    if not files:
        print(f"no page sources in {folder}")
        return []
    measured = [
        measure(file.stem, file.read_bytes()) for file in files if b"<html" not in file.read_bytes()[:200].lower()
    ]
    counts = token_ids([text for text, _ in measured])
    found = [make(len(ids)) for (_, make), ids in zip(measured, counts, strict=True)]
    print("\nscreen                                 tokens  listed  visible  missed  labels  absent  left out")
    for one in found:
        print(
            f"{one.name:<38} {one.tokens:>6} {one.listed:>7} {one.acting:>8} {one.missed:>7} {one.labels:>7}"
            f" {len(one.absent):>7} {one.counted:>9}"
        )
        for label in one.absent:
            print(f"    absent: {label[:80]!r}")
    median = statistics.median(one.tokens for one in found)
    each = sum(one.tokens for one in found) / sum(one.listed for one in found)
    acting, missed = sum(one.acting for one in found), sum(one.missed for one in found)
    labels, absent = sum(one.labels for one in found), sum(len(one.absent) for one in found)
    recall, said = 1 - missed / acting, 1 - absent / labels
    for name, value, good in (
        ("median tokens a screen", f"{median:g} (at most 400)", median <= 400),
        ("tokens for each interactive element listed", f"{each:.1f} (at most 30)", each <= 30),
        ("visible interactive elements listed", f"{recall:.1%} of {acting} (100 %)", missed == 0),
        ("distinct visible labels present", f"{said:.1%} of {labels} (at least 99 %)", said >= 0.99),
    ):
        print(f"{name}: {value}: {'met' if good else 'MISSED'}")
    print(PEERS)
    return [one._asdict() for one in found]


if __name__ == "__main__":
    main()
