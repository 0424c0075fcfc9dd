"""The whole system in virtual time: the real services as they compose themselves, from the consumed message to the
last effect. In place of log, phone and provider stand virtual ones; nothing else does.
"""

import asyncio
import contextlib
import random
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple
from unittest import mock

from chaos import virtual_clock, virtual_world
from chaos.virtual_clock import VirtualLoop
from chaos.virtual_core import RUNNING, Core, connected
from chaos.virtual_log import Faults
from chaos.virtual_phone import VirtualSession
from chaos.virtual_process import Life, Process, consume
from chaos.virtual_screen import WORDS, ShownPhone, Threads, asked, meant, run_in_executor
from chaos.virtual_world import World, simulated
from selenium.webdriver.remote.remote_connection import RemoteConnection

from apex_bus import micro
from apex_executor import service as executor
from apex_executor.worker import Worker
from apex_perception import compose as perception
from apex_planner import compose as planner
from apex_planner import endpoint
from apex_planner.clients.protocol import Answer
from apex_schemas.actions import Tap
from apex_schemas.decision import DecisionReply, DecisionRequest, ToolCallDecision
from apex_schemas.geometry import Point

Transport = Literal["cloud-proxy", "direct"]
Then = Literal["crash", "pause", "server"]
"""What happens in a gap: the process is killed or paused, or the nats-server is killed."""
ENVIRON = {
    "AI_PLANNER_ENABLED": "true",
    "AI_PLANNER_SCREENSHOT": "always",
    "AI_PLANNER_MODEL": "canned",
    "ANTHROPIC_API_KEY": "none",
}
TURNS = 3
_DOWN_S = 8.0
SLOW_S = 12.0
"""Longer than the endpoint is silent, and than a third of its claim."""


class Model:
    """A provider whose answers are canned: the next button of the screen that it is shown, then the end. In turn 0 its
    first answer cannot be used, so that it is asked once more; in turn 1 it takes its time."""

    def __init__(self, life: Life) -> None:
        self._life = life

    async def ask(self, request: DecisionRequest) -> Answer:
        world, key = self._life.world, request.key
        assert isinstance(world, WholeWorld)
        await self._life.point()
        world.did(self._life, "call")
        world.paid[key].append(self._life)
        await asyncio.sleep(SLOW_S if key.turn == 1 else world.rng.uniform(0.2, 2))
        await self._life.point()
        return Answer(reply=_answer(request), raw="{}")

    async def decide(self, request: DecisionRequest) -> DecisionReply:
        return (await self.ask(request)).reply


def _model(_: object) -> Model:
    return Model(RUNNING.get())


def _answer(request: DecisionRequest) -> ToolCallDecision:
    screen = request.user_blocks[-1] if request.key.call == 0 else "\n".join(request.user_blocks)
    turn = request.key.turn
    if turn + 1 >= TURNS:
        found = re.search(rf"({'|'.join(WORDS)}) tapped", screen)
        assert found is not None, screen
        return ToolCallDecision(
            tool="finish_task", arguments={"success": True, "reason": "done", "evidence": found[0]}, text_output="Done."
        )
    button = re.search(rf'\b(e\d+) button "?Step {WORDS[turn]}\b', screen)
    assert button is not None, screen
    purpose = "go on" if turn or request.key.call else None
    return ToolCallDecision(
        tool="tap",
        arguments={"element": button[1]},
        purpose=purpose,
        expected_outcome="it is tapped",
        text_output="On.",
    )


class Effect(NamedTuple):
    process: str
    worker: str
    gap: int
    what: str


class AnyOf(frozenset[tuple[str, int]]):
    """Several gaps in which a world is struck."""

    def __eq__(self, gap: object) -> bool:
        return gap in self

    __hash__ = frozenset.__hash__


class WholeWorld(World):
    """A world of one task on one phone, which loses its session once. `trail` is what each life of each process did
    that lasts, or that others hear, in order, with the number of its process's last gap before that."""

    def __init__(self, seed: int, faults: Faults, *, transport: Transport = "cloud-proxy", **more: Any) -> None:
        super().__init__(seed, faults, tasks=1, cancelled=0, devices=("d-1",), **more)
        self.transport = transport
        self.core = Core(self.log, random.Random(seed))
        self.trail: list[Effect] = []
        self.gaps: dict[str, int] = {}
        self.shown = {device: ShownPhone(loses_after=1) for device in self.devices}
        self.phones = {**self.shown}
        self._apply = self.log.apply
        self.log.apply = self._applied  # type: ignore[method-assign]

    def did(self, life: Life, what: str) -> None:
        self.trail.append(Effect(life.process.name, life.worker, self.points[life.process.name], what))

    def effects(self, worker: str, kinds: Sequence[str]) -> list[Effect]:
        return [each for each in self.trail if each.worker == worker and each.what in kinds]

    def _applied(self, subject: str, data: bytes, headers: dict[str, str]) -> int:
        sequence = self._apply(subject, data, headers)
        if (life := RUNNING.get(None)) is not None:
            kind = subject.rpartition(".")[2] if subject.startswith("task.") else subject.partition(".")[0]
            self.did(life, kind)
        return sequence

    async def run(self) -> None:
        self.log.clock = virtual_clock.running()
        if self.transport == "cloud-proxy":
            for n in range(1, self.copies + 1):
                Process(self, f"endpoint-{n}", self._endpoint)
        await super().run()
        self.gaps = dict(self.points)

    def _executor(self, life: Life) -> list[Any]:
        connected(life, self.core)
        workers: dict[str, Any] = {}

        def made(*args: Any, **more: Any) -> Any:
            worker = Worker(*args, **more)
            workers[worker.config.alias] = worker
            return worker

        with mock.patch.object(virtual_world, "Worker", made):
            loops = super()._executor(life)
        fleet: Any = SimpleNamespace(worker=workers.get, statuses=list)
        return [*loops, micro.serve(life, "executor", *executor._endpoints(fleet, None))]  # type: ignore[arg-type]

    def _planner(self, life: Life) -> list[Any]:
        with mock.patch.object(planner, "consume", consume):
            return self._composed(life, planner.compose(life, {**ENVIRON, "AI_PLANNER_TRANSPORT": self.transport}))  # type: ignore[arg-type]

    def _endpoint(self, life: Life) -> list[Any]:
        return self._composed(life, endpoint.compose(life, ENVIRON))  # type: ignore[arg-type]

    def _perception(self, life: Life) -> list[Any]:
        with (
            mock.patch.object(perception, "consume", consume),
            mock.patch.object(perception, "ThreadPoolExecutor", return_value=Threads(life)),
        ):
            return self._composed(life, perception.compose(life, ENVIRON))  # type: ignore[arg-type]

    def _composed(self, life: Life, composing: Coroutine[Any, Any, list[Any]]) -> list[Any]:
        """What a service's own composition root makes of a life; it waits for nothing."""
        connected(life, self.core)
        try:
            composing.send(None)
        except StopIteration as made:
            return made.value
        raise AssertionError("a composition that waits")


def _pause(pause: Callable[[Life], None]) -> Callable[[Life], None]:
    def paused(life: Life) -> None:
        world = life.world
        if world.then != "server":  # type: ignore[comparison-overlap]
            pause(life)
            return
        world.server_crashes += 1
        world.log.crash(world.rng.uniform(0, _DOWN_S))
        world.log.clock.call_later(_DOWN_S, world._reconnected)

    return paused


def _touch(touch: Callable[..., None]) -> Callable[..., None]:
    def touched(session: VirtualSession, id_: str, action: Tap, arrived: Any) -> None:
        world, before = session.life.world, len(session._phone.acts)
        touch(session, id_, Tap(at=Point(x=0, y=meant(action.at))), arrived)
        if len(session._phone.acts) > before:
            world.did(session.life, "touch")  # type: ignore[attr-defined]

    return touched


def _execute(_: RemoteConnection, command: str, params: dict[str, Any]) -> dict[str, Any]:
    """In place of what goes to an Appium server over HTTP."""
    world = RUNNING.get().world
    assert isinstance(world, WholeWorld)
    return asked(world.shown["d-1"], command, params["sessionId"])


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """The seams: what pulls, the phone's server, the provider, and threads."""
    with (
        simulated(),
        mock.patch.object(VirtualLoop, "run_in_executor", run_in_executor),
        mock.patch.object(Life, "pause", _pause(Life.pause)),
        mock.patch.object(VirtualSession, "_touch", _touch(VirtualSession._touch)),
        mock.patch.object(RemoteConnection, "execute", _execute),
        mock.patch("apex_planner.endpoint.provider_client", _model),
        mock.patch("apex_planner.clients.choose.provider_client", _model),
    ):
        yield
