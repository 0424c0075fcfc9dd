"""A driver that has not yet noticed that its device was taken over: what is for the next one, it must not acknowledge.

Found in virtual time (seed 144): a plan was acknowledged by the last driver, which saw no task of its own in it, and
the next one, on that task, never got it. The end of a task would have gone the same way, and the device been kept.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from apex_bus.consume import Done, Later
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.tasks import Tasks
from apex_schemas import envelope
from apex_schemas.actions import Tap
from apex_schemas.devices import Claim
from apex_schemas.errors import WireError
from apex_schemas.geometry import Point
from apex_schemas.ids import new_attempt, new_task_id
from apex_schemas.slots import Slot, finished
from apex_schemas.steps import PlannedStep
from apex_schemas.structs import Wire
from apex_schemas.task import TaskFinished

DEVICE, TASK = "sim-1", new_task_id()
PLANNED = Slot(device=DEVICE, task=TASK, kind="planned", turn=0)
STEP = PlannedStep(action=Tap(at=Point(x=1, y=1)), page="p")
END = TaskFinished(status="failed", turns=1, finished_at_ms=1, by="watchdog")
OTHER = Claim(task=new_task_id(), request=b"", request_sequence=1, pool="any", attempt="a")


def driver(*, held: bool, claim: Claim | None) -> Tasks:
    lease: Any = SimpleNamespace(claim=claim, held=lambda: held)
    usable = asyncio.Event()
    usable.set()
    device: Any = SimpleNamespace(
        lease=lease, config=DeviceConfig(alias=DEVICE, url="http://a"), prepare=None, usable=usable
    )
    bus: Any = SimpleNamespace()
    return Tasks(bus, bus, device, ExecutorSettings(), changed=asyncio.Event())


def delivered(slot: Slot, body: Wire | None) -> Any:
    data = b"?" if body is None else envelope.encode(
        body, task=slot.task, device=slot.device, turn=slot.turn, attempt=new_attempt()
    )  # fmt: skip
    return SimpleNamespace(subject=slot.subject, data=data, headers={}, sequence=1, timestamp_ns=1)


@pytest.mark.parametrize("claim", [None, OTHER], ids=["on no task", "on another task"])
@pytest.mark.parametrize(("slot", "body"), [(PLANNED, STEP), (finished(DEVICE, TASK), END)], ids=["plan", "end"])
async def test_message_of_a_task_that_is_not_ours_is_done_with_only_while_the_device_is_surely_ours(
    slot: Slot, body: Wire, claim: Claim | None
) -> None:
    assert isinstance(await driver(held=True, claim=claim).on_slot(delivered(slot, body)), Done)
    assert isinstance(await driver(held=False, claim=claim).on_slot(delivered(slot, body)), Later)


async def test_end_that_cannot_be_read_is_left_to_the_next_driver_too() -> None:
    garbage = delivered(finished(DEVICE, TASK), None)
    assert isinstance(await driver(held=False, claim=None).on_slot(garbage), Later)
    with pytest.raises(WireError):
        await driver(held=True, claim=None).on_slot(garbage)
