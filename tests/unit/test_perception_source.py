"""Bytes as phones really send them: each damage is read as far as it can be, and named."""

import contextlib
import struct
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apex_perception.errors import (
    NothingToSee,
    NoTree,
    PerceptionError,
    PictureUnreadable,
    SourceEmpty,
    SourceRefused,
    SourceTooLarge,
)
from apex_perception.perceive import perceive, perceive_file
from apex_perception.source import MAX_SOURCE_BYTES
from apex_schemas.geometry import Size
from apex_schemas.scene import Scene


def tree(text: str) -> str:
    return f"<?xml version='1.0' encoding='UTF-8'?><hierarchy rotation='0' width='400' height='800'>{text}</hierarchy>"


def button(text: str, bounds: str = "[0,0][100,50]") -> str:
    return f'<node class="android.widget.Button" text="{text}" clickable="true" bounds="{bounds}"/>'


def labels(scene: Scene) -> list[str]:
    return [element.label for element in scene.elements]


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\0\0\0" * width) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_a_sound_source_is_not_called_recovered() -> None:
    scene = perceive(tree(button("OK &amp; go")).encode())
    assert labels(scene) == ["OK & go"]
    assert not scene.recovered


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (b"WARNING: linker: x\r\r\n" + tree(button("A")).encode() + b"UI hierchary dumped to: /dev/tty", "A"),
        (tree(button("a\x01b\ufffdc")).encode(), "ab\ufffdc"),
        (tree(button("x&#55357;y")).encode(), "xy"),
        (tree(button("x&#55357;&#56832;y")).encode(), "x😀y"),
        (tree(button("x\ud83dy")).encode("utf-8", "surrogatepass"), "xy"),
        (tree(button("x\ud83d\ude00y")).encode("utf-8", "surrogatepass"), "x😀y"),
        (tree(button("설정 와이파이")).encode("cp949"), "설정 와이파이"),
        (tree(button("設定を開く")).encode("cp932"), "設定を開く"),
        (tree(button("设置 无线网络")).encode("gb18030"), "设置 无线网络"),
        (tree(button("Zoë")).encode("latin-1"), "Zoë"),
        (tree(button("é")).encode("utf-16"), "é"),
        (tree(button("1 < 2")).encode(), "1 < 2"),
        (tree(button('say "hi" & go')).encode(), 'say "hi" & go'),
        (tree(button("a&nbsp;b")).encode(), "a\xa0b"),
        (tree(button("A") + "<a$b;1 x='1'></a$b;1>").encode(), "A"),
        (tree(button("A")).encode() + tree("").encode(), "A"),
    ],
)
def test_damage_is_read_through_and_said(data: bytes, label: str) -> None:
    scene = perceive(data)
    assert labels(scene) == [label]
    assert scene.recovered
    assert scene.recovery


@pytest.mark.parametrize("cut", [3, 15, 40, 62])
def test_a_stream_that_ends_in_the_middle_keeps_what_is_whole(cut: int) -> None:
    whole = tree(button("first") + button("second")).encode()
    scene = perceive(whole[: -len("</hierarchy>") - cut])
    assert labels(scene) == ["first"]
    assert scene.recovered


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", SourceEmpty),
        (b" \r\n", SourceEmpty),
        (b"ERROR: null root node returned by UiTestAutomationBridge.", NoTree),
        (b"Killed", NoTree),
        (b'{"value":{"error":"unknown error","message":"Illegal character (d83d)"}}', NoTree),
        (b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><hierarchy/>', SourceRefused),
        (b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + tree(button("&b;")).encode(), SourceRefused),
        (b"<a" + b" " * MAX_SOURCE_BYTES, SourceTooLarge),
    ],
)
def test_without_a_tree_there_is_a_typed_error_or_a_picture(data: bytes, error: type[NoTree]) -> None:
    with pytest.raises(error):
        perceive_file(data) if data else perceive(data)
    scene = perceive_file(data, screenshot=png(40, 80))
    assert scene.source == "screenshot-only"
    assert scene.screen.size == Size(width=40, height=80)
    assert scene.recovery


def test_neither_source_nor_picture_is_its_own_error() -> None:
    with pytest.raises(NothingToSee):
        perceive_file(b"")
    with pytest.raises(PictureUnreadable):
        perceive_file(b"", screenshot=b"not a picture")


def test_an_entity_declared_out_of_sight_of_the_check_is_not_expanded() -> None:
    late = "<hierarchy>" + " " * 200_000 + '<!DOCTYPE x [<!ENTITY a "secret">]>' + button("&a;") + "</hierarchy>"
    with contextlib.suppress(NoTree):
        assert "secret" not in str(perceive(late.encode()))


def test_a_saved_webdriver_answer_is_opened() -> None:
    source = tree(button("A")).replace('"', '\\"')
    assert labels(perceive(f'{{"value":"{source}"}}'.encode())) == ["A"]


def test_a_very_long_text_is_cut_with_a_mark_and_thousands_of_nodes_are_counted() -> None:
    long = perceive(tree(button("x" * 65_000)).encode()).elements[0].label
    assert long.startswith("xxx")
    assert "+64,500 characters" in long
    assert len(long) < 600
    many = perceive(tree("".join(button(f"b{n}", f"[0,{n // 6}][9,{n // 6 + 1}]") for n in range(4_000))).encode())
    assert len(many.elements) + many.omitted == 4_000


def test_a_deep_tree_is_read_to_its_bottom() -> None:
    deep = "<node bounds='[0,0][400,800]'>" * 900 + button("bottom") + "</node>" * 900
    assert labels(perceive(tree(deep).encode())) == ["bottom"]


_PIECES = st.sampled_from(
    [
        "<hierarchy>", "</hierarchy>", "<node ", "/>", ">", "</node>", "<", '"', "'", "&", "&amp;", "&#55357;", "]]>",
        'bounds="[0,0][10,10]" ', 'bounds="[9,', 'text="a', 'class="  "', "<!--", "-->", "<![CDATA[", "<?xml", "?>",
        "<AppiumAUT>", '<XCUIElementTypeCell x="1" y="2" width="nan" height="1e999"/>', "\0", "é", "<html>",
        "<a href=x>",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=20_000)
@given(st.one_of(st.binary(max_size=300), st.lists(_PIECES, max_size=40).map(lambda parts: "".join(parts).encode())))
def test_whatever_the_bytes_are_there_is_a_scene_or_a_typed_error(data: bytes) -> None:
    try:
        scene = perceive(data)
    except PerceptionError:
        return
    assert scene.fingerprint


@pytest.mark.parametrize("piece", ['a="', "<", '<a b="', "&#", '"   ', " x", "<a>", "<!DOCTYPE ", '&a;"', "[0,0]"])
def test_time_grows_with_the_size_of_the_damage_only(piece: str) -> None:
    def seconds(size: int) -> float:
        begun = time.process_time()
        with contextlib.suppress(PerceptionError):
            perceive(("<h>" + piece * (size // len(piece))).encode())
        return time.process_time() - begun

    assert seconds(1_000_000) < 15.0
