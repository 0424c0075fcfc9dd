"""The lab host as a stranger starts it, but for the trace viewer: up, a request by a bare NATS client, rows, down.

One stack for the whole file, with a project name and ports of its own, beside whatever else runs on the engine.
"""

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import components
import nats
import pytest
from integration.compose_lab import ROOT, Lab
from nats.aio.msg import Msg

from apex_bus.connection import flushed
from apex_schemas import envelope
from apex_schemas.task import TaskFinished

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1_200)]

FINISHED_SECONDS = 90
RECORDED_SECONDS = 20
SERVICES = ("perception", "planner", "endpoint", "executor", "decision-log")

REACHES = {
    ("postgres", 5432): {"decision-log"},
    ("phones", 4723): {"executor", "perception"},
    ("model", 8080): {"endpoint"},
}
"""Who alone opens a connection to a server, by any of the server's addresses."""

_OPENS = """
import socket
for address in {addresses}:
    try:
        socket.create_connection((address, {port}), 1).close()
    except OSError:
        continue
    print("open")
    break
else:
    print("closed")
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    components.docker()
    if (ROOT / ".env").exists():
        pytest.fail("the stack is tested as it is without a .env: move yours away", pytrace=False)
    lab = Lab()
    try:
        lab.command("--profile", "cli", "build", "--quiet", timeout_s=1_000)
        lab.up()
        yield lab
    finally:
        lab.down()
    assert lab.leftovers() == []


async def run_task(lab: Lab, goal: str) -> TaskFinished:
    """Publish a bare goal as any NATS client would, and wait for how it ended."""
    client = await nats.connect(f"nats://127.0.0.1:{lab.nats_port}")
    ends: asyncio.Queue[Msg] = asyncio.Queue()
    try:
        await client.subscribe("task.*.*.end.finished", cb=ends.put)
        await flushed(client)
        stored = json.loads((await client.request("request.any", json.dumps({"goal": goal}).encode(), timeout=20)).data)
        assert stored["stream"] == "REQUESTS"
        while True:
            end = envelope.decode((await asyncio.wait_for(ends.get(), FINISHED_SECONDS)).data).body
            if isinstance(end, TaskFinished) and end.goal == goal:
                return end
    finally:
        await client.close()


async def recorded(lab: Lab, goal: str) -> list[str]:
    """The row of a task that has ended, once the decision-log has written it: id and status."""
    deadline = asyncio.get_running_loop().time() + RECORDED_SECONDS
    while True:
        rows = lab.sql(f"select task_id, status from tasks where goal = '{goal}' and status <> 'running'")
        if rows:
            return rows[0]
        assert asyncio.get_running_loop().time() < deadline, f"no row for {goal!r}"
        await asyncio.sleep(0.2)


async def test_a_bare_goal_is_carried_out_and_every_decision_is_in_postgres(lab: Lab) -> None:
    end = await run_task(lab, "Turn on Wi-Fi")
    assert (end.status, end.claimed, end.evidence_found) == ("succeeded", True, True)
    task, status = await recorded(lab, "Turn on Wi-Fi")
    assert status == "succeeded"
    calls = lab.sql(
        f"select tool_name, rationale, thinking from planner_decision_log where task_id = '{task}' order by turn"
    )
    assert [tool for tool, _, _ in calls] == ["tap", "tap", "tap", "finish_task"]
    assert all(rationale and thinking for _, rationale, thinking in calls)
    states = [phone_state(lab, udid) for udid in ("sim-1", "sim-2")]
    assert [each["apps"]["com.android.settings"]["wifi"] for each in states].count(True) == 1


async def test_a_goal_that_cannot_be_done_ends_failed_with_a_reason(lab: Lab) -> None:
    end = await run_task(lab, "Turn on the flux capacitor")
    assert end.status == "failed"
    assert end.failure_reason
    assert await recorded(lab, "Turn on the flux capacitor")


@pytest.mark.parametrize(("server", "port"), REACHES)
def test_a_server_is_reached_by_those_that_need_it_and_by_no_other(lab: Lab, server: str, port: int) -> None:
    program = _OPENS.format(addresses=lab.addresses(server), port=port)
    answers = {service: lab.python(service, program).strip() for service in SERVICES}
    assert {service for service, answer in answers.items() if answer == "open"} == REACHES[server, port]


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_runs_without_root_on_a_read_only_system_with_its_own_identity(lab: Lab, service: str) -> None:
    program = (
        "import json, os, pathlib\n"
        "caps = [l.split()[1] for l in open('/proc/self/status') if l.startswith('CapEff')]\n"
        "found = [str(p) for d in ('/identity', '/writer', '/owner', '/admin', '/credentials')"
        " for p in pathlib.Path(d).rglob('*')]\n"
        "print(json.dumps({'user': os.getuid(), 'caps': caps, 'found': found, 'names': sorted(os.environ),"
        " 'writable': [d for d in ('/', '/opt/apex', '/identity') if os.access(d, os.W_OK)]}))"
    )
    seen = json.loads(lab.python(service, program))
    assert (seen["user"], seen["caps"], seen["writable"]) == (10001, ["0000000000000000"], [])
    database = ["/writer/password", "/writer/pgpass"] if service == "decision-log" else []
    assert sorted(seen["found"]) == ["/identity/seed", *database]
    assert [name for name in seen["names"] if "DATABASE" in name or "PG" in name] == (
        ["DECISION_LOG_DATABASE_URL", "PGPASSFILE"] if service == "decision-log" else []
    )
    assert ("AI_PLANNER_API_KEY" in seen["names"]) == (service == "endpoint")


def test_published_ports_are_on_loopback_alone(lab: Lab) -> None:
    listed = [json.loads(line) for line in lab.command("ps", "--format", "json").splitlines()]
    published = [each for one in listed for each in one["Publishers"] or () if each["PublishedPort"]]
    assert {each["PublishedPort"] for each in published} == {lab.nats_port, lab.phones_port}
    assert {each["URL"] for each in published} == {"127.0.0.1"}


def test_the_command_line_runs_as_a_container_with_the_client_s_identity(lab: Lab) -> None:
    cli = ("run", "--rm", "-T", "cli")
    task = lab.command(*cli, "submit", "Turn off Wi-Fi", "--follow").strip()
    assert re.fullmatch(r"[0-9a-f]{32}", task)
    assert "succeeded" in lab.command(*cli, "show", task)
    assert "sim-2" in lab.command(*cli, "devices")


async def test_starting_again_changes_nothing_and_another_task_runs(lab: Lab) -> None:
    before = lab.sql("select count(*) from tasks")
    lab.up()
    assert lab.sql("select count(*) from tasks") == before
    end = await run_task(lab, "Turn on Wi-Fi and report the network name")
    assert end.status == "succeeded"


async def test_more_room_is_had_by_starting_again_and_what_was_stored_is_still_there(lab: Lab) -> None:
    before = lab.sql("select count(*) from tasks")
    larger = replace(lab, settings={"APEX_STORE_MIB": "15232"})
    larger.up()
    assert "stream TASKS may now have" in larger.command("logs", "--no-log-prefix", "provision")
    may_keep = re.search(r"max_file\W+(\d+)", larger.inside("nats", "cat", "/configuration/nats-server.conf"))
    assert may_keep is not None
    assert int(may_keep[1]) >= 15_232 * 2**20
    assert larger.sql("select count(*) from tasks") == before
    end = await run_task(larger, "Turn off Wi-Fi")
    assert end.status == "succeeded"


def phone_state(lab: Lab, udid: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{lab.phones_port}/lab/phones/{udid}/state", timeout=20) as reply:
        return json.load(reply)
