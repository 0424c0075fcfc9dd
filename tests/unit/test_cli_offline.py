"""`apex perceive` and `apex plan` on files: what they print, and how a file that is of no use is refused."""

import asyncio
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import components
import pytest

from apex_cli.app import main
from apex_lab.model import serve

SOURCE = """<?xml version="1.0" encoding="UTF-8"?>
<hierarchy rotation="0"><android.widget.FrameLayout package="com.android.settings" class="android.widget.FrameLayout"
 bounds="[0,0][540,1200]"><android.widget.TextView package="com.android.settings" class="android.widget.TextView"
 text="Network" bounds="[0,0][540,100]"/><android.widget.Switch package="com.android.settings"
 class="android.widget.Switch" text="Wi-Fi" checkable="true" checked="false" clickable="true" enabled="true"
 bounds="[0,200][540,300]"/></android.widget.FrameLayout></hierarchy>"""

RANDOM = random.Random(7).randbytes(40_000)


@pytest.fixture
def source(tmp_path: Path) -> str:
    file = tmp_path / "screen.xml"
    file.write_text(SOURCE)
    return str(file)


@pytest.fixture
def model_url() -> Iterator[str]:
    """A scripted model server beside the command, which runs an event loop of its own."""
    told: list[str] = []
    up, done = Event(), Event()

    async def run() -> None:
        async with serve(port=0) as url:
            told.append(url)
            up.set()
            await asyncio.to_thread(done.wait)

    thread = Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert up.wait(20)
        yield told[0]
    finally:
        done.set()
        thread.join()


def test_a_page_source_is_told_element_by_element(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perceive", source]) == 0
    printed = capsys.readouterr().out
    assert "com.android.settings" in printed
    assert "“Wi-Fi” off" in printed


def test_the_prompt_text_is_what_a_model_is_shown(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["perceive", source, "--prompt"]) == 0
    assert capsys.readouterr().out.startswith("<screen app=")


@pytest.mark.slow
def test_a_scene_as_json_is_read_by_plan(
    source: str, tmp_path: Path, model_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-that-no-output-may-hold")
    assert main(["perceive", source, "--json"]) == 0
    scene = tmp_path / "scene.json"
    scene.write_text(capsys.readouterr().out)
    words = ["plan", "--goal", "turn on Wi-Fi", "--model", "scripted-current", "--base-url", model_url, "--json"]
    assert main([*words, "--scene", str(scene)]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert (told["outcome"], told["tool"], told["target"]["label"]) == ("planned", "tap", "Wi-Fi")
    assert told["rationale"]
    assert told["usage"]["input_tokens"] > 0
    assert len(told["attempts"]) == 1
    assert "a-key-that-no-output-may-hold" not in printed.out + printed.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "model", "path"),
    [("anthropic", "scripted-current", ""), ("openai", "scripted-compatible", "/v1")],
)
def test_a_page_source_can_be_planned_on_at_once_and_the_scripted_model_needs_no_key(
    provider: str,
    model: str,
    path: str,
    source: str,
    model_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AI_PLANNER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    words = ["plan", "--scene", source, "--goal", "turn on Wi-Fi", "--provider", provider, "--model", model]
    assert main([*words, "--base-url", f"{model_url}{path}"]) == 0
    assert "tap “Wi-Fi”" in capsys.readouterr().out


@pytest.mark.slow
def test_a_provider_that_refuses_ends_1_and_the_record_says_why(
    source: str, model_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plan", "--scene", source, "--goal", "turn on Wi-Fi", "--model", "no-such-model", "--json"]
    assert main([*words, "--base-url", model_url]) == 1
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["outcome"] != "planned"
    assert told["error"]
    assert "no decision" in printed.err


def test_without_a_model_plan_names_the_variable(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--scene", source, "--goal", "x"]) == 5
    said = capsys.readouterr().err
    assert "AI_PLANNER_MODEL" in said
    assert "docs/howto/saved-screens.md" in said


def test_plan_asks_nobody_about_a_blank_goal(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--scene", source, "--model", "m", "--base-url", "http://127.0.0.1:1"]
    assert main([*words, "--goal", " "]) == 5
    assert "the goal is blank" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the page source is empty"),
        (b"nothing of the kind", "text without a tree: “nothing of the kind”"),
        (b"\x00\xff\x00\xfe", "no page source"),
        (RANDOM, "40,000 bytes that are neither text nor a picture"),
        (b"<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>", "“502 Bad Gateway”"),
        (b"<!DOCTYPE html><HTML><body><h1>Access <b>Denied</b></h1><a href='/'>x</a></body></HTML>", "server or proxy"),
        (b"<html><title>ERROR: The requested URL could not be retrieved</title></html>", "HTML page"),
        (b"<?xml version='1.0'?><project><name>x</name></project>", "XML that describes no screen"),
        (b'{"a": 1}', "JSON without a page source"),
        (b"\x89PNG\r\n\x1a\n....", "a PNG picture: give it with --screenshot"),
        (b"PK\x03\x04....", "a ZIP archive"),
        (b'{"value": {"error": "invalid session id", "message": "gone"}}', "invalid session id: gone"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_no_page_source_ends_5_and_is_called_what_it_is(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(content)
    assert main(["perceive", str(file)]) == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("apex: ")
    assert words in told.err
    assert not re.search(r"Traceback|[a-z][A-Z]\w+: ", told.err), "the name of a class is no word for a person"


def test_a_scene_given_as_a_page_source_is_told_where_it_goes(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["perceive", source, "--json"]) == 0
    (tmp_path / "scene.json").write_text(capsys.readouterr().out)
    assert main(["perceive", str(tmp_path / "scene.json")]) == 5
    assert "`apex plan --scene` reads it" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        SOURCE.encode("utf-16"),
        b"[log] read\n" + SOURCE.encode(),
        json.dumps({"value": SOURCE}).encode(),
        SOURCE.encode()[:-40],
        b"<hierarchy rotation='0'/>",
        b"<AppiumAUT><XCUIElementTypeApplication name='x' x='0' y='0' width='375' height='667'/></AppiumAUT>",
        b"<html><title>Shop</title><body><a href='/'>404 things to buy</a></body></html>",
    ],
)
def test_what_a_phone_or_a_browser_may_send_is_a_screen_however_it_was_damaged(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(content)
    assert main(["perceive", str(file)]) == 0


def test_a_page_with_nothing_to_act_on_is_shown_with_a_doubt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.html").write_text("<html><body><p>Web page blocked</p></body></html>")
    assert main(["perceive", str(tmp_path / "page.html")]) == 0
    assert "a proxy answered for the phone" in capsys.readouterr().err


def test_every_recorded_page_source_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    for file in sorted(components.dumps().iterdir()):
        assert main(["perceive", str(file), "--json"]) == 0, capsys.readouterr().err


def test_a_file_that_is_not_there_a_broken_scene_and_a_wrong_size_are_told(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["perceive", str(tmp_path / "none.xml")]) == 5
    (tmp_path / "scene.json").write_text('{"type": "scene"}')
    assert main(["plan", "--scene", str(tmp_path / "scene.json"), "--goal", "x"]) == 5
    assert main(["perceive", source, "--screen", "big"]) == 2
    (tmp_path / "shot.png").write_text("no picture")
    assert main(["perceive", source, "--screenshot", str(tmp_path / "shot.png")]) == 5
    told = capsys.readouterr().err
    assert "cannot be read as PNG or JPEG: it is neither" in told
    assert "Traceback" not in told
