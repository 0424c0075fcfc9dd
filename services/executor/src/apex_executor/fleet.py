"""The devices of this executor: those of the environment and of a file that is read again when it changes.

Owns a worker for each device that NATS has consumers and rights for; a device without is shown with what to do, and
looked for again. A device that is taken out of the file is given up after its task; one that is written otherwise too,
and taken on anew. A file that cannot be read changes nothing.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from apex_bus.connection import Bus
from apex_bus.errors import SettingsError, Transient
from apex_bus.records import Record
from apex_bus.tasklog import TaskLog
from apex_executor.settings import DeviceConfig, ExecutorSettings, all_devices
from apex_executor.worker import Worker
from apex_schemas import subjects
from apex_schemas.devices import DeviceRecord, DeviceStatus
from apex_schemas.ids import new_attempt

log = logging.getLogger(__name__)

_READ_S: Final = 2.0
_CHECK_S: Final = 15.0
_CHECKED_AT_ONCE: Final = 8

Provisioned = Callable[[DeviceConfig], Awaitable[str | None]]
"""Whether NATS has what a device needs: None when it has, else what is missing and what to do. Raises Transient."""


class Fleet:
    def __init__(
        self,
        bus: Bus,
        tasklog: TaskLog,
        settings: ExecutorSettings,
        configs: Sequence[DeviceConfig],
        check: Provisioned,
    ) -> None:
        self._bus, self._log, self._settings, self._check = bus, tasklog, settings, check
        self._configs = tuple(configs)
        self._workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self._missing: dict[str, tuple[DeviceConfig, str]] = {}
        self._complaint = ""
        self._unmatched = True

    def worker(self, alias: str) -> Worker | None:
        found = self._workers.get(alias)
        return found[0] if found else None

    @property
    def workers(self) -> list[Worker]:
        return [worker for worker, _ in self._workers.values()]

    def statuses(self) -> list[DeviceStatus]:
        return [worker.status() for worker in self.workers] + [
            DeviceStatus(
                device=config.alias,
                platform=config.platform,
                state="unprovisioned",
                worker=self._bus.worker,
                epoch=0,
                reason=reason,
                pools=config.all_pools,
            )
            for config, reason in self._missing.values()
        ]

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            looked_at = 0.0
            while True:
                due = time.monotonic() - looked_at > _CHECK_S
                if self._read() or self._unmatched or (self._missing and due):
                    self._unmatched, looked_at = False, time.monotonic()
                    await self._match(group)
                await asyncio.sleep(_READ_S)

    def _read(self) -> bool:
        """Whether the file says otherwise than before."""
        if not self._settings.devices_file:
            return False
        try:
            configs, complaint = all_devices(self._settings), ""
        except SettingsError as error:
            configs, complaint = self._configs, str(error)
        if complaint and complaint != self._complaint:
            log.error("the devices stay as they were: %s", complaint)
        self._complaint = complaint
        changed = configs != self._configs
        self._configs = configs
        return changed

    async def _match(self, group: asyncio.TaskGroup) -> None:
        """Have a worker for each device of the configuration, and no other."""
        wanted = {config.alias: config for config in self._configs}
        for alias, (worker, running) in list(self._workers.items()):
            if wanted.get(alias) != worker.config:
                self._give_up(worker, running)
        self._missing = {alias: each for alias, each in self._missing.items() if alias in wanted}
        new = [config for config in self._configs if config.alias not in self._workers]
        places = asyncio.Semaphore(_CHECKED_AT_ONCE)

        async def take_on(config: DeviceConfig) -> None:
            async with places:
                await self._take_on(config, group)

        await asyncio.gather(*map(take_on, new))

    def _give_up(self, worker: Worker, running: "asyncio.Task[None]") -> None:
        if worker.driving:
            worker.retire()
        else:
            running.cancel()

    async def _take_on(self, config: DeviceConfig, group: asyncio.TaskGroup) -> None:
        try:
            reason = await self._check(config)
            if reason is None:
                await self._announce(config)
        except Transient as error:
            reason = f"it is not known yet whether NATS is ready for it: {error}"
        if reason is not None:
            if self._missing.get(config.alias) != (config, reason):
                log.error("%s is not driven: %s", config.alias, reason)
            self._missing[config.alias] = (config, reason)
            return
        self._missing.pop(config.alias, None)
        worker = Worker(self._bus, self._log, config, self._settings)
        running = group.create_task(worker.run())
        self._workers[config.alias] = worker, running
        running.add_done_callback(lambda _: self._ended(config.alias, worker))

    def _ended(self, alias: str, worker: Worker) -> None:
        if self.worker(alias) is worker:
            del self._workers[alias]
            self._unmatched = True  # a device that was written otherwise is taken on anew

    async def _announce(self, config: DeviceConfig) -> None:
        """A label is known by its record, for the intake of any executor: nobody drives it."""
        for label in config.pools:
            record = DeviceRecord(worker=self._bus.worker, epoch=0, released=True, reason="a label of devices")
            place = Record(self._bus, "DEVICES", subjects.device(label))
            await place.write(record, attempt=new_attempt(), last=0, device=label)
