"""How fresh a device's lease is, as its driver tells it: renewed a while ago, stale, or not ours to say."""

import time

import pytest

from apex_bus.connection import Bus
from apex_bus.tasklog import TaskLog
from apex_executor.settings import DeviceConfig, ExecutorSettings
from apex_executor.worker import Worker
from apex_schemas.subjects import Identity


@pytest.fixture
def worker() -> Worker:
    bus = Bus.__new__(Bus)  # what is tried here asks no server
    bus.identity, bus.worker = Identity.EXECUTOR, "executor-here-1"
    settings = ExecutorSettings(lease_seconds=1_000)
    return Worker(bus, TaskLog(bus), DeviceConfig(alias="sim-1", url="http://phone"), settings)


@pytest.mark.parametrize(("ago_s", "stale"), [(0, False), (500, False), (1_500, True)])
def test_driver_tells_how_long_ago_it_renewed_its_lease_and_whether_that_is_too_long(
    worker: Worker, ago_s: int, stale: bool
) -> None:
    worker.driving = True
    worker._lease._renewed_at = time.monotonic() - ago_s
    status = worker.status()
    assert status.renewed_s is not None
    assert ago_s <= status.renewed_s < ago_s + 100
    assert status.stale is stale


@pytest.mark.parametrize("driving", [False, True], ids=["driven by another", "lost just now"])
def test_nothing_is_told_of_a_lease_that_is_not_ours(worker: Worker, driving: bool) -> None:
    worker.driving = driving
    assert worker.status().renewed_s is None
    worker._lease._renewed_at = 0.0 if driving else time.monotonic()
    assert worker.status().renewed_s is None
