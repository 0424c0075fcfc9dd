"""What came up over the target between the look and the act, on simulated phones that answer as UiAutomator2 and
XCUITest do: under a dialog of the same app nothing is found, and what lies above the active window is not in it.
"""

from typing import Any

import pytest
from integration.appium_phone import labelled, target_of
from integration.sim_phone import OpenSim, SimPhone
from msgspec import structs

from apex_executor.errors import ActRefused
from apex_schemas.actions import Back, DeviceAction, InputText, LaunchApp, LongPress, Tap
from apex_schemas.devices import Platform
from apex_schemas.geometry import Point
from apex_schemas.scene import Element, Scene
from apex_schemas.steps import Target

pytest_plugins = ("integration.sim_phone",)

BOTH: list[Platform] = ["android", "ios"]
OLD: dict[str, Any] = {"unsupported": ["listWindows"]}
MESSAGES = "com.google.android.apps.messaging"


def named(scene: Scene, element: Element) -> Target:
    """The target as the planner names it."""
    return structs.replace(target_of(element), app=scene.app)


async def refused(phone: SimPhone, action: DeviceAction, target: Target) -> str:
    before = len(await phone.acts())
    with pytest.raises(ActRefused) as caught:
        await phone.act(action, target)
    assert len(await phone.acts()) == before, "it was touched all the same"
    return str(caught.value)


async def tap_seen_before(phone: SimPhone, scene: Scene, label: str) -> str:
    element = labelled(scene, label)
    assert element.tap_point is not None
    return await refused(phone, Tap(at=element.tap_point), named(scene, element))


@pytest.mark.parametrize(
    ("platform", "faults", "over"),
    [("android", {}, "a dialog of com.android.contacts"), ("android", OLD, "a dialog of"), ("ios", {}, "an alert")],
)
async def test_what_lies_under_a_dialog_of_its_own_app_is_occluded(
    open_sim: OpenSim, platform: Platform, faults: dict[str, Any], over: str
) -> None:
    phone = await open_sim(platform, faults=faults)
    await phone.act(LaunchApp(app="Contacts"))
    await phone.tap("Create contact")
    name = await phone.field("Name")
    assert (await phone.act(InputText(text="Bob", at=name.tap_point), target_of(name))).success
    seen = await phone.scene()
    await phone.act(Back())
    if platform == "android":  # the first one was for the keyboard
        await phone.act(Back())
    assert labelled(await phone.scene(), "Discard").tap_point is not None
    label = "Phone" if platform == "android" else "phone"
    said = await tap_seen_before(phone, seen, label)
    assert said.startswith("OCCLUDED: ")
    assert f"lies under {over}" in said
    await phone.tap("Keep editing")
    element = labelled(seen, label)
    assert element.tap_point is not None
    assert (await phone.act(Tap(at=element.tap_point), named(seen, element))).success


@pytest.mark.parametrize("faults", [{}, OLD])
async def test_what_lies_under_a_sheet_as_large_as_the_screen_is_occluded_on_android(
    open_sim: OpenSim, faults: dict[str, Any]
) -> None:
    phone = await open_sim(faults=faults)
    await phone.act(LaunchApp(app="Notes"))
    seen = await phone.scene()
    note = next(each for each in seen.elements if each.role == "row" and each.tap_point is not None)
    assert note.tap_point is not None
    assert (await phone.act(LongPress(at=note.tap_point, duration_ms=900), named(seen, note))).success
    sheet = await phone.scene()
    assert "OCCLUDED: " in await refused(phone, Tap(at=note.tap_point), named(seen, note))
    await phone.tap("Delete")
    assert "OCCLUDED: " in await tap_seen_before(phone, sheet, "Share")  # under the question whether to delete it


@pytest.mark.parametrize("faults", [{}, OLD])
async def test_what_was_seen_in_a_dialog_that_has_gone_is_stale_and_not_covered(
    open_sim: OpenSim, faults: dict[str, Any]
) -> None:
    phone = await open_sim(state={"permission_popup": True}, faults=faults)
    await phone.act(LaunchApp(app="Contacts"))
    seen = await phone.scene()
    allow = next(each for each in seen.elements if (each.role, each.label) == ("button", "Allow"))
    assert allow.tap_point is not None
    assert (await phone.act(Tap(at=allow.tap_point), named(seen, allow))).success
    said = await refused(phone, Tap(at=allow.tap_point), named(seen, allow))
    assert said.startswith("STALE_SCENE: button 'Allow' is no longer on the screen")


def _corner(element: Element) -> Point:
    assert element.bounds is not None
    return Point(x=element.bounds.left + 9, y=element.bounds.top + 9)


async def test_bubble_over_its_own_app_covers_what_is_under_it_and_can_be_tapped_itself(open_sim: OpenSim) -> None:
    """Its window lies above the active one, in which alone `UiSelector` looks."""
    phone = await open_sim()
    await phone.act(LaunchApp(app="Messages"))
    seen = await phone.scene()
    await phone.handsets.set_state(phone.udid, {MESSAGES: {"bubble": True}})
    after = await phone.scene()
    bubble = next(each for each in after.elements if each.label == "Chat bubble")
    assert bubble.tap_point is not None
    under = labelled(seen, "Grace Hopper")
    said = await refused(phone, Tap(at=_corner(bubble)), named(seen, under))
    assert f"OCCLUDED: row {under.label!r} lies under another window of {MESSAGES} now" in said
    assert (await phone.act(Tap(at=bubble.tap_point), named(after, bubble))).success
    hit = (await phone.acts())[-1]["hit"]
    assert hit["desc"] == "Chat bubble"


async def test_bubble_of_another_app_covers_what_is_under_it(open_sim: OpenSim) -> None:
    phone = await open_sim()
    await phone.act(LaunchApp(app="Messages"))
    await phone.handsets.set_state(phone.udid, {MESSAGES: {"bubble": True}})
    await phone.act(LaunchApp(app="Settings"))
    scene = await phone.scene()
    bubble = labelled(scene, "Chat bubble")
    assert bubble.tap_point is not None
    under = next(
        each for each in scene.elements
        if each.role == "row" and each.bounds is not None and each.bounds.contains(_corner(bubble))
    )  # fmt: skip
    said = await refused(phone, Tap(at=_corner(bubble)), named(scene, under))
    assert f"lies under a window of {MESSAGES} now" in said
    assert under.tap_point is not None, "its free part is elsewhere"
    assert (await phone.act(Tap(at=under.tap_point), named(scene, under))).success


async def test_driver_that_could_not_list_windows_once_is_asked_again_in_its_next_session(open_sim: OpenSim) -> None:
    troubled = await open_sim(faults=OLD)
    await troubled.act(LaunchApp(app="Settings"))
    await troubled.tap("Network & internet")
    await troubled.faults(unsupported=None)
    await troubled.session.end()
    phone = SimPhone(troubled.session, await troubled.session.open(), troubled.handsets, troubled.udid)
    await phone.act(LaunchApp(app="Messages"))
    seen = await phone.scene()
    await phone.handsets.set_state(phone.udid, {MESSAGES: {"bubble": True}})
    bubble = next(each for each in (await phone.scene()).elements if each.label == "Chat bubble")
    said = await refused(phone, Tap(at=_corner(bubble)), named(seen, labelled(seen, "Grace Hopper")))
    assert "lies under another window" in said


async def test_what_the_keyboard_covers_is_covered_by_it_on_ios(open_sim: OpenSim) -> None:
    phone = await open_sim("ios")
    await phone.act(LaunchApp(app="Contacts"))
    before = await phone.scene()
    button = next(each for each in before.elements if each.label == "Create contact" and each.tap_point)
    await phone.tap("Create contact")
    scene = await phone.scene()
    assert scene.keyboard is not None
    hidden = [each for each in scene.elements if each.obstacle == "occluded" and each.bounds is not None]
    for element in hidden:
        assert element.bounds is not None
        said = await refused(phone, Tap(at=element.bounds.center), named(scene, element))
        assert "OCCLUDED" in said
    assert button.tap_point is not None
    assert "STALE_SCENE" in await refused(phone, Tap(at=button.tap_point), named(before, button))


async def test_switches_that_share_an_identifier_are_told_apart_by_their_labels_on_ios(open_sim: OpenSim) -> None:
    phone = await open_sim("ios", faults={"relabel": {"android:id/switch_widget": "onoff"}})
    await phone.act(LaunchApp(app="Clock"))
    scene = await phone.scene()
    switches = [each for each in scene.elements if each.role == "switch" and each.tap_point is not None]
    shared = [each for each in switches if each.resource_id == switches[0].resource_id]
    assert len(shared) > 1, "the clock's alarms have one identifier"
    wrong = structs.replace(named(scene, shared[1]), bounds=shared[0].bounds)  # as if it had moved up since
    assert shared[0].tap_point is not None
    assert (await phone.act(Tap(at=shared[0].tap_point), wrong)).success
    scale = phone.handle.scale
    hit = (await phone.acts())[-1]
    assert shared[1].bounds is not None
    assert shared[1].bounds.top / scale <= hit["y"] < shared[1].bounds.bottom / scale
