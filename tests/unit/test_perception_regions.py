"""Regions, dialogs, and where what scrolls goes on."""

from apex_perception.perceive import View, perceive
from apex_schemas.geometry import Size
from apex_schemas.scene import SemanticScene


def view(cls: str, bounds: str, inner: str = "", **flags: str) -> str:
    written = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in flags.items())
    return f'<node class="android.widget.{cls}" package="com.shop.app" bounds="{bounds}" {written}>{inner}</node>'


def android(*windows: str) -> SemanticScene:
    text = f'<hierarchy rotation="0" width="400" height="800">{"".join(windows)}</hierarchy>'
    scene = perceive(text.encode(), View(window=Size(width=400, height=800)))
    assert isinstance(scene, SemanticScene)
    return scene


def whole(*inner: str) -> str:
    return view("FrameLayout", "[0,0][400,800]", "".join(inner))


def brief(scene: SemanticScene) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(region.kind, region.label, region.elements) for region in scene.regions]


def row(number: int, top: int, bottom: int) -> str:
    return view("LinearLayout", f"[0,{top}][400,{bottom}]", clickable="true", content_desc=f"Row {number}")


TITLE = view("TextView", "[60,0][300,80]", text="Basket")
BACK = view("ImageButton", "[0,0][60,80]", clickable="true", content_desc="Back")


def test_a_toolbar_a_list_and_a_bottom_navigation_are_regions_with_their_elements() -> None:
    bar = view("Toolbar", "[0,0][400,80]", BACK + TITLE)
    rows = view("ListView", "[0,80][400,700]", row(1, 80, 180) + row(2, 180, 280), scrollable="true")
    tabs = view(
        "BottomNavigationView", "[0,700][400,800]",
        view("FrameLayout", "[0,700][200,800]", clickable="true", content_desc="Home")
        + view("FrameLayout", "[200,700][400,800]", clickable="true", content_desc="You"),
    )  # fmt: skip
    assert brief(android(whole(bar, rows, tabs))) == [
        ("app_bar", "Basket", ("e1", "e2")),
        ("navigation", "", ("e6", "e7")),
        ("list", "", ("e3", "e4", "e5")),
    ]


def test_a_bar_that_only_an_identifier_tells_is_an_app_bar() -> None:
    bar = view("RelativeLayout", "[0,0][400,80]", BACK + TITLE, resource_id="com.shop.app:id/toolbar")
    assert brief(android(whole(bar))) == [("app_bar", "Basket", ("e1", "e2"))]


def test_a_dialog_is_no_region_but_a_dialog() -> None:
    ok = view("Button", "[60,400][340,450]", clickable="true", text="OK")
    title = view("TextView", "[60,320][340,360]", text="Delete?")
    scene = android(whole(BACK), view("FrameLayout", "[40,300][360,500]", title + ok))
    assert brief(scene) == []
    assert [(region.label, region.elements) for region in scene.dialogs] == [("Delete?", ("e2", "e3"))]


def test_a_list_whose_last_row_is_cut_goes_on_below_and_one_with_whole_rows_says_nothing() -> None:
    def list_of(*rows: str) -> tuple[str, ...]:
        return android(whole(view("ListView", "[0,80][400,400]", "".join(rows), scrollable="true"))).elements[0].more

    assert list_of(row(1, 80, 180), row(2, 180, 280), row(3, 280, 380), row(4, 380, 400)) == ("below",)
    assert list_of(row(1, 80, 100), row(2, 100, 200), row(3, 200, 300), row(4, 300, 400)) == ("above",)
    assert list_of(row(1, 80, 180), row(2, 180, 280), row(3, 280, 380)) == ()


def test_a_strip_whose_last_card_is_cut_goes_on_at_the_right() -> None:
    cards = "".join(
        view("LinearLayout", f"[{left},80][{min(left + 150, 400)},180]", clickable="true", content_desc=f"Card {left}")
        for left in (0, 150, 300)
    )
    strip = view("RecyclerView", "[0,80][400,180]", cards, scrollable="true")
    assert android(whole(strip)).elements[0].more == ("right",)


def test_on_ios_what_lies_beyond_the_edge_says_where_a_table_goes_on() -> None:
    cells = "".join(
        f'<XCUIElementTypeCell label="Row {n}" x="0" y="{n * 100 - 50}" width="375" height="100"/>' for n in range(9)
    )
    table = f'<XCUIElementTypeTable x="0" y="0" width="375" height="667">{cells}</XCUIElementTypeTable>'
    root = '<XCUIElementTypeApplication name="A" x="0" y="0" width="375" height="667">'
    scene = perceive(f"<AppiumAUT>{root}{table}</XCUIElementTypeApplication></AppiumAUT>".encode())
    assert scene.elements[0].more == ("above", "below")
