"""The whole system on one machine from wheels alone: servers, simulated phones, scripted model and the services.

Owns a folder (stores, credentials, logs) and every process that it starts; all of them end with the block. Tests,
bench and chaos use it as the demo does:

    async with Stack(directory, phones=5, copies={"executor": 2}) as stack:
        async with stack.client() as client: ...
        await stack.kill("planner")
"""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from apex_bus.connection import Bus, connect
from apex_bus.credentials import Credentials, write_credentials
from apex_bus.settings import BusSettings
from apex_cli.client import Client
from apex_cli.errors import CommandError
from apex_lab.embedded.nats import NatsServer, nats_server
from apex_lab.embedded.postgres import PostgresServer, postgres_server
from apex_lab.embedded.process import free_port
from apex_lab.stack import services
from apex_lab.stack.child import Child
from apex_lab.stack.database import Database, database
from apex_lab.stack.errors import NotReady, StackInUse, UnknownService
from apex_lab.stack.http import Handsets, answers
from apex_lab.stack.services import Device, Model, Wiring
from apex_schemas.queries import TasksQuery
from apex_schemas.subjects import Identity

Result = TypeVar("Result")

READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_FOLDERS: Final = ("credentials", "logs", "nats", "postgres", "tmp")
_STORE_MIB: Final = 1_024


def _silent(_: str) -> None:
    pass


class Stack:
    """The running system. `nats` and `postgres` can be killed and started as they are; services by name.

    `model` None means the scripted one. `environment` adds variables per service, as in
    `{"planner": {"AI_PLANNER_SCREENSHOT": "never"}}`; `phone_arguments` go to `python -m apex_lab.phone`.
    `fresh` forgets what an earlier stack left there; `services_wanted` False leaves the services out, for whoever
    starts their own; `report` hears what is going on.
    """

    nats: NatsServer
    postgres: PostgresServer
    wiring: Wiring
    phones: Handsets
    _database: Database

    def __init__(
        self,
        directory: Path,
        *,
        phones: int = 1,
        copies: Mapping[str, int] | None = None,
        model: Model | None = None,
        environment: Mapping[str, Mapping[str, str]] | None = None,
        phone_arguments: tuple[str, ...] = (),
        services_wanted: bool = True,
        fresh: bool = False,
        nats_port: int = 0,
        report: Callable[[str], None] = _silent,
    ) -> None:
        self.directory = directory.absolute()
        self.logs = self.directory / "logs"
        self.children: dict[str, Child] = {}
        self._aliases = tuple(f"sim-{n}" for n in range(1, phones + 1))
        self._copies, self._model, self._environment = copies or {}, model, environment or {}
        self._phone_arguments, self._services_wanted = phone_arguments, services_wanted
        self._fresh, self._nats_port, self._report = fresh, nats_port, report
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._exit.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exit.aclose()

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Client]:
        """A client with the client's credentials."""
        bus = await self._connect(Identity.CLIENT)
        try:
            yield Client(bus, self.nats.url)
        finally:
            await bus.close()

    @asynccontextmanager
    async def bus(self, identity: Identity) -> AsyncGenerator[Bus]:
        """A connection as any identity, for tests."""
        bus = await self._connect(identity)
        try:
            yield bus
        finally:
            await bus.close()

    @property
    def database_url(self) -> str:
        """The superuser's, for whoever looks from outside; no service has it."""
        return self.postgres.dsn

    def child(self, name: str) -> Child:
        """A process by name: `planner`, `executor-2`, `phone`, `model`. Raises UnknownService."""
        if name not in self.children:
            raise UnknownService(name, list(self.children))
        return self.children[name]

    async def kill(self, name: str, *, again: bool = True) -> None:
        """`kill -9` a process; with `again` it is started anew at once."""
        await self.child(name).kill(again=again)

    async def restart(self, name: str) -> None:
        """End a process in order and start it; also starts one that was killed for good."""
        child = self.child(name)
        await child.stop()
        await child.start()

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Return when every phone is ready and the decision-log answers. Raises NotReady, ServiceFailed."""
        await self.while_running(self._until_ready(seconds))

    async def while_running(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What `work` comes to. Raises ServiceFailed when a process cannot be kept running meanwhile."""
        failures = [child.failed for child in self.children.values()]
        working = asyncio.ensure_future(work)
        try:
            await asyncio.wait({working, *failures}, return_when=asyncio.FIRST_COMPLETED)
            for failure in failures:
                if failure.done():
                    await failure
            return await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    # -- how it comes up

    async def _start(self) -> None:
        self._lay_out()
        credentials = write_credentials(self.directory / "credentials", self._aliases)
        self._report("starting NATS")
        self.nats = await self._exit.enter_async_context(
            nats_server(self.directory / "nats", config=credentials.authorization, port=self._nats_port)
        )
        phone_url, model_url = await self._start_lab()
        self._report("starting PostgreSQL")
        self.postgres = await self._exit.enter_async_context(postgres_server(self.directory / "postgres"))
        self._database = database(self.postgres.dsn, self.directory / "credentials" / "database")
        self.wiring = self._wire(credentials, phone_url, model_url)
        self._report("making streams, consumers and tables")
        async with asyncio.TaskGroup() as both:
            both.create_task(self._provision())
            both.create_task(self._migrate())
        await self._until_answered({"phone": f"{phone_url}/lab/phones", "model": f"{model_url}/lab/model/health"})
        self.phones = await self._exit.enter_async_context(Handsets(phone_url))
        if self._services_wanted:
            self._report("starting the services")
            for service in services.MODULES:
                for copy in range(1, self._copies.get(service, 1) + 1):
                    await self._start_service(service, service if copy == 1 else f"{service}-{copy}")
            await self.ready()

    def _lay_out(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.directory / "stack.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._exit.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackInUse(self.directory) from None
        if self._fresh:
            for name in _FOLDERS:
                if (self.directory / name).exists():
                    shutil.rmtree(self.directory / name)
        for folder in (self.logs, self.directory / "tmp"):
            folder.mkdir(exist_ok=True)

    async def _start_lab(self) -> tuple[str, str]:
        """Phone and model, on ports that stay theirs when they are started again."""
        phone_port, model_port = free_port(), free_port()
        arguments = ("--phones", str(len(self._aliases)), "--port", str(phone_port), *self._phone_arguments)
        await self._keep("phone", services.command("apex_lab.phone", *arguments), services.bare(self.directory))
        if self._model is None:
            await self._keep(
                "model", services.command("apex_lab.model", "--port", str(model_port)), services.bare(self.directory)
            )
        return f"http://127.0.0.1:{phone_port}", f"http://127.0.0.1:{model_port}"

    def _wire(self, credentials: Credentials, phone_url: str, model_url: str) -> Wiring:
        return Wiring(
            nats_url=self.nats.url,
            seeds=credentials.seeds,
            database_url=self._database.url("writer"),
            database_passwords=self._database.folder / "writer.pgpass",
            devices=tuple(
                Device(alias=alias, url=phone_url, capabilities={"appium:udid": alias}) for alias in self._aliases
            ),
            model=self._model or services.scripted_model(model_url),
            directory=self.directory,
        )

    async def _provision(self) -> None:
        environment = services.nats_environment(self.wiring, Identity.PROVISIONER)
        environment |= {"APEX_DEVICES": ",".join(self._aliases), "APEX_STORE_MIB": str(_STORE_MIB)}
        await self._child("provision", services.command("apex_bus.provision"), environment).run_to_end()

    async def _migrate(self) -> None:
        """As on the lab host: the superuser makes the roles, the owner the tables; the service may write rows."""
        known = self._database
        for name, verb, environment in (
            ("roles", "roles", known.environment("admin") | known.passwords()),
            ("migrate", "upgrade", known.environment("owner")),
        ):
            command = services.command("apex_decision_log.migrate", verb)
            await self._child(name, command, services.bare(self.directory) | environment).run_to_end()

    async def _start_service(self, service: str, name: str) -> None:
        extra = self._environment.get(service, {})
        environment = services.service_environment(service, name, self.wiring, extra)
        await self._keep(name, services.command(services.MODULES[service][0]), environment)

    async def _keep(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        child = self._child(name, command, environment)
        self.children[name] = child
        self._exit.push_async_callback(child.stop)
        await child.start()

    def _child(self, name: str, command: list[str], environment: Mapping[str, str]) -> Child:
        log = self.logs / f"{name}.log"
        return Child(name, command, environment=environment, log=log, report=self._report)

    async def _until_answered(self, urls: Mapping[str, str]) -> None:
        for name, url in urls.items():
            if name not in self.children:
                continue  # a real model stands in for it
            await self._poll(lambda url=url: answers(url), f"the {name} server did not answer", READY_SECONDS)

    async def _until_ready(self, seconds: float) -> None:
        async with self.client() as client:

            async def all_ready() -> bool:
                try:
                    await client.tasks(TasksQuery(limit=1))
                    return {status.device for status in await client.devices() if status.state == "ready"} >= {
                        *self._aliases
                    }
                except CommandError:
                    return False

            await self._poll(all_ready, "not every phone was ready", seconds)

    async def _poll(self, condition: Callable[[], Any], what: str, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while not await condition():
            if asyncio.get_running_loop().time() > deadline:
                raise NotReady(what, seconds, self.logs)
            await asyncio.sleep(_POLL_SECONDS)

    async def _connect(self, identity: Identity) -> Bus:
        settings = BusSettings(url=self.nats.url, seed_file=str(self.wiring.seeds[identity]))
        return await connect(identity, settings)
