"""Whole tasks on screens that real phones sent: seen, planned and acted on by the services, ended as the plan says."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import components
import pytest
import pytest_asyncio
from integration.conftest import Nats
from integration.recorded_rig import ANDROID, IOS, RecordedRig, recorded_rig

from apex_schemas.actions import InputText, Swipe, Tap
from apex_schemas.geometry import Point
from apex_schemas.scene import Scene
from apex_schemas.steps import WorldEvent

pytestmark = pytest.mark.slow

SETTINGS, LOGIN, PHONE_SETTINGS = 0, 9, 1
"""Numbers of screens: 001 and 050 of the Android ones, 012 of those of iOS."""


@pytest_asyncio.fixture
async def rig(nats_server: Nats, tmp_path: Path) -> AsyncGenerator[RecordedRig]:
    async with recorded_rig(nats_server.url, tmp_path) as rig:
        yield rig


def places(story: Sequence[tuple[Scene, WorldEvent]]) -> list[tuple[str, Point]]:
    """Where the touches were to begin, in the units of the phone."""
    found: list[tuple[str, Point]] = []
    for scene, event in story:
        match event.action:
            case Tap(at=at):
                found.append(("tap", in_units(at, scene)))
            case Swipe(start=start):
                found.append(("swipe", in_units(start, scene)))
            case action:
                raise AssertionError(f"{type(action).__name__} is no touch")
    return found


def in_units(point: Point, scene: Scene) -> Point:
    return Point(x=round(point.x / scene.screen.scale), y=round(point.y / scene.screen.scale))


def touched(acts: Sequence[dict[str, Any]]) -> list[tuple[str, Point]]:
    return [(act["kind"], Point(x=act["x"], y=act["y"])) for act in acts]


async def test_named_steps_are_done_on_the_elements_that_bear_the_names(rig: RecordedRig) -> None:
    task = await rig.run('tap "Battery" then tap "Show password"', ANDROID, screen=SETTINGS)
    end = await rig.end_of(task)
    assert end is not None
    assert (end.status, end.turns, end.claimed) == ("succeeded", 3, True)
    first, second = await rig.acts(ANDROID)
    assert (first["screen"], first["x"], first["y"]) == ("001_settings-top-en", 540, 1097)
    assert (second["screen"], second["hit"]["desc"]) == ("002_login-password-edittexts", "Show password")
    story = await rig.story(task)
    assert [(event.success, event.page) for _, event in story] == [(True, scene.page) for scene, _ in story]
    assert all(event.rationale and event.purpose and event.expected_outcome for _, event in story)


async def test_text_is_typed_into_the_field_that_is_named_and_read_back(rig: RecordedRig) -> None:
    task = await rig.run('type "Žofie" into "username" then tap "Login"', ANDROID, screen=LOGIN)
    end = await rig.end_of(task)
    assert end is not None
    assert end.status == "succeeded"
    acts = await rig.acts(ANDROID)
    assert [act["kind"] for act in acts] == ["clear", "text", "tap"]
    assert (acts[1]["value"], acts[1]["hit"]["desc"], acts[2]["hit"]["text"]) == ("Žofie", "username", "Login")
    (_, typed), _ = await rig.story(task)
    assert isinstance(typed.action, InputText)
    assert (typed.success, typed.code) == (True, None)


async def test_steps_on_an_iphone_arrive_in_its_own_units(rig: RecordedRig) -> None:
    task = await rig.run('tap "General" then tap "Display & Text Size"', IOS, screen=PHONE_SETTINGS)
    end = await rig.end_of(task)
    assert end is not None
    assert end.status == "succeeded"
    story = await rig.story(task)
    assert [scene.screen.scale for scene, _ in story] == [2.0, 2.0]
    acts = await rig.acts(IOS)
    assert touched(acts) == places(story) == [("tap", Point(x=195, y=270)), ("tap", Point(x=188, y=205))]
    assert [act["hit"]["text"] for act in acts] == ["General", "Display & Text Size"]


@pytest.mark.parametrize("device", [ANDROID, IOS])
async def test_every_recorded_screen_is_seen_and_touched_once_in_one_task(rig: RecordedRig, device: str) -> None:
    screens = (await rig.phones.state(device))["screens"]
    task = await rig.run(f"look around {len(screens)} turns", device)
    end = await rig.end_of(task)
    assert end is not None
    assert (end.status, end.turns) == ("succeeded", len(screens) + 1)
    story, acts = await rig.story(task), await rig.acts(device)
    assert [act["screen"] for act in acts] == screens
    assert touched(acts) == places(story)
    assert [event.success for _, event in story] == [True] * len(screens)
    assert len({scene.fingerprint for scene, _ in story}) == len(screens)


async def test_both_phones_show_all_dumps_between_them(rig: RecordedRig) -> None:
    shown = [screen for device in (ANDROID, IOS) for screen in (await rig.phones.state(device))["screens"]]
    assert sorted(shown) == sorted(dump.stem for dump in components.dumps().glob("*.xml"))


async def test_task_whose_target_is_nowhere_fails_with_a_reason(rig: RecordedRig) -> None:
    task = await rig.run('tap "No such thing"', ANDROID, advance=False)
    end = await rig.end_of(task)
    assert end is not None
    assert (end.status, end.claimed, end.stage) == ("failed", False, "planner")
    assert '"No such thing"' in (end.failure_reason or "")
    assert {act["kind"] for act in await rig.acts(ANDROID)} <= {"swipe"}
