"""The session that a device holds is the one that its record names, also when the record could not be written then."""

import asyncio
from typing import Any

import pytest

from apex_bus.errors import LogUnavailable
from apex_executor.device import Device
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_schemas.devices import DeviceRecord, SessionHandle


class _Session:
    def __init__(self) -> None:
        self.handle: SessionHandle | None = None
        self.opened = 0

    async def alive(self) -> bool:
        return self.handle is not None

    async def clear(self, known: SessionHandle | None) -> int:
        return 0

    async def open(self) -> SessionHandle:
        self.opened += 1
        self.handle = SessionHandle(id=f"s{self.opened}", url="http://phone")
        return self.handle


class _Lease:
    """Its first write fails."""

    def __init__(self) -> None:
        self.record = DeviceRecord(worker="w", epoch=1, state="opening")
        self.fails = 1

    async def update(self, *, session: SessionHandle) -> None:
        if self.fails:
            self.fails -= 1
            raise LogUnavailable("no answer")
        self.record = DeviceRecord(worker="w", epoch=1, state="opening", session=session)


async def _device_whose_session_was_opened_while_the_log_was_away() -> tuple[Device, _Lease]:
    session: Any = _Session()
    lease: Any = _Lease()
    config = DeviceConfig(alias="d-1", url="http://phone")
    device = Device(config, ExecutorSettings(), lease=lease, session=session, changed=asyncio.Event())
    with pytest.raises(LogUnavailable):
        await device.open()
    return device, lease


async def test_a_session_opened_while_the_log_was_away_is_named_when_the_device_is_driven_again() -> None:
    device, lease = await _device_whose_session_was_opened_while_the_log_was_away()
    await device.open()
    assert lease.record.session == device.handle == SessionHandle(id="s1", url="http://phone")


async def test_a_session_opened_while_the_log_was_away_is_named_when_perception_asks_for_one() -> None:
    device, lease = await _device_whose_session_was_opened_while_the_log_was_away()
    assert (await device.heal_for("s0")).session == device.handle
    assert lease.record.session == device.handle
