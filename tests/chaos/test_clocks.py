"""The clock of one host is five minutes off: tasks still begin, act, end and are recorded."""

import sys
from collections.abc import Mapping
from pathlib import Path

import components
import pytest

from apex_lab.stack import Stack, services
from apex_lab.stack.recorded import recorded
from apex_schemas.ids import new_task_id
from apex_schemas.task import TaskFinished, TaskRequest

_WRONG = """
import runpy, sys, time
shift, module = float(sys.argv[1]), sys.argv[2]
seconds, nanoseconds = time.time, time.time_ns
time.time = lambda: seconds() + shift
time.time_ns = lambda: nanoseconds() + int(shift * 1e9)
sys.argv = [module]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""Only the wall clock: what counts seconds on the monotonic one is right on such a host, too."""


class WrongClock(Stack):
    """A stack in which one service's host is `shift` seconds off."""

    late: str
    shift: float

    async def _keep(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        if name == self.late:
            command = [sys.executable, "-I", "-c", _WRONG, str(self.shift), services.MODULES[name][0]]
        await super()._keep(name, command, environment)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("shift", [300.0, -300.0], ids=["ahead", "behind"])
@pytest.mark.parametrize("service", ["executor", "planner", "perception", "decision-log", "planner-decision"])
async def test_task_succeeds_with_a_clock_five_minutes_off(service: str, shift: float, tmp_path: Path) -> None:
    components.nats()
    components.postgres()
    stack = WrongClock(tmp_path / "stack")
    stack.late, stack.shift = service, shift
    task = new_task_id()
    async with stack, stack.client() as client, client.following(task) as happenings:
        goal = "turn on Wi-Fi and report the network name"
        await client.submit(TaskRequest(goal=goal, task=task, timeout_s=60), "any")
        async for happening in happenings:
            if isinstance(happening.body, TaskFinished):
                assert (happening.body.status, happening.body.answer) == ("succeeded", "Lab-5G"), happening.body
        codes = {step.code for step in (await recorded(client, task, seconds=60)).steps}
        assert not codes & {"STALE_PLAN", "SCENE_TOO_OLD"}, codes
