"""The commands against a running system: submit and follow, show, tasks, devices, cancel, and a bare NATS client."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import components
import nats
import pytest
import pytest_asyncio

from apex_lab.stack import Stack
from apex_schemas import envelope
from apex_schemas.queries import TasksQuery
from apex_schemas.subjects import Identity

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("cli-system"),
]

WIFI = "turn on Wi-Fi and report the network name"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    async with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def fresh_phone(stack: Stack) -> None:
    await stack.phones.set_faults("sim-1", {"latency_ms": 0})
    await stack.phones.reset("sim-1")


class Ran:
    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


async def _apex(stack: Stack, *words: str, identity: Identity = Identity.CLIENT) -> Ran:
    seed = str(stack.wiring.seeds[identity])
    environ = {**os.environ, "APEX_NATS_URL": stack.nats.url, "APEX_NATS_SEED_FILE": seed}
    command = [sys.executable, "-m", "apex_cli", *words]
    return Ran(
        await asyncio.to_thread(
            subprocess.run, command, env=environ, capture_output=True, text=True, timeout=90, check=False
        )
    )


async def _until_listed(stack: Stack, task: str, status: str) -> None:
    async with stack.client() as client:
        for _ in range(600):
            found = {each.task: each.status for each in (await client.tasks(TasksQuery())).tasks}
            if found.get(task) == status:
                return
            await asyncio.sleep(0.1)
    pytest.fail(f"{task} never was {status} in the database")


async def test_a_followed_task_prints_its_id_and_its_turns_and_ends_0_when_it_succeeds(stack: Stack) -> None:
    ran = await _apex(stack, "submit", WIFI, "--follow")
    assert ran.code == 0, ran.err
    assert len(ran.out.strip()) == 32
    assert "sim-1 has taken the task" in ran.err
    assert "succeeded after" in ran.err
    assert "Lab-5G" in ran.err
    assert (await stack.phones.state("sim-1"))["apps"]["com.android.settings"]["wifi"] is True


async def test_a_followed_task_that_fails_ends_1_and_names_the_command_that_tells_more(stack: Stack) -> None:
    ran = await _apex(stack, "submit", "turn on NFC", "--follow")
    assert ran.code == 1
    assert f"`apex show {ran.out.strip()}`" in ran.err


async def test_show_tells_the_last_task_with_reasons_and_tokens_also_as_json(stack: Stack) -> None:
    task = (await _apex(stack, "submit", WIFI, "--follow")).out.strip()
    await _until_listed(stack, task, "succeeded")
    shown = await _apex(stack, "show")
    assert task in shown.out
    assert "tokens" in shown.out
    assert "[scripted]" in shown.out
    told = json.loads((await _apex(stack, "show", task, "--json")).out)
    assert told["summary"]["status"] == "succeeded"
    assert all(step["rationale"] for step in told["steps"])
    assert all(call["input_tokens"] > 0 for step in told["steps"] for call in step["calls"])


async def test_an_unknown_task_ends_4(stack: Stack) -> None:
    ran = await _apex(stack, "show", "f" * 32)
    assert ran.code == 4, ran.err
    assert "apex tasks" in ran.err


async def test_tasks_and_devices_are_listed(stack: Stack) -> None:
    task = (await _apex(stack, "submit", WIFI, "--follow", "--device", "sim-1")).out.strip()
    await _until_listed(stack, task, "succeeded")
    assert task in (await _apex(stack, "tasks", "--status", "succeeded")).out
    assert (await _apex(stack, "tasks", "--json", "--limit", "1")).out.startswith("[")
    devices = json.loads((await _apex(stack, "devices", "--json")).out)
    assert [(each["device"], each["platform"]) for each in devices] == [("sim-1", "android")]
    assert "sim-1" in (await _apex(stack, "devices")).out


async def test_a_running_task_is_cancelled(stack: Stack) -> None:
    await stack.phones.set_faults("sim-1", {"latency_ms": 2_000})  # so that it lasts for longer than a command takes
    task = (await _apex(stack, "submit", WIFI)).out.strip()
    cancelled = await _apex(stack, "cancel", task, "--reason", "changed my mind")
    assert (cancelled.code, "asked to cancel" in cancelled.out) == (0, True), cancelled.out
    await _until_listed(stack, task, "cancelled")
    told = json.loads((await _apex(stack, "show", task, "--json")).out)
    assert "changed my mind" in json.dumps(told["summary"])


async def test_a_task_that_waits_is_shown_listed_and_cancelled_by_its_first_digits(stack: Stack) -> None:
    async with _paused(stack):
        first = (await _apex(stack, "submit", WIFI)).out.strip()
        second = (await _apex(stack, "submit", "turn on Bluetooth", "--device", "sim-1")).out.strip()
        shown = await _apex(stack, "show", first[:8])
        assert (shown.code, "queued" in shown.out, first in shown.out) == (0, True, True), shown.err
        assert "waits for a phone in pool any, it is the next" in shown.out
        assert "sim-1 waiting: paused by" in shown.out
        told = json.loads((await _apex(stack, "show", second, "--json")).out)
        assert told["summary"]["status"] == "queued"
        assert told["summary"]["queue"]["pool"] == "sim-1"
        listed = await _apex(stack, "tasks", "--status", "queued")
        assert [second in line for line in listed.out.splitlines()[1:3]] == [True, False], listed.out
        assert first in (await _apex(stack, "tasks", "--limit", "2")).out
        chosen = json.loads((await _apex(stack, "tasks", "--json", "--status", "queued", "--goal", "BLUE")).out)
        assert [each["task"] for each in chosen] == [second]
        unbegun = await _apex(stack, "report", first)
        assert (unbegun.code, "waits for a phone" in unbegun.err) == (4, True)
        for task in (first, second):
            cancelled = await _apex(stack, "cancel", task[:10])
            assert (cancelled.code, f"asked to cancel {task}" in cancelled.out) == (0, True), cancelled.err
            await _until_listed(stack, task, "cancelled")
        ended = await _apex(stack, "show", second)
        assert "turn on Bluetooth" in ended.out, "what was asked for is known of a task that never began"


async def test_what_cannot_be_cancelled_is_said_and_leaves_no_trace(stack: Stack) -> None:
    task = (await _apex(stack, "submit", WIFI, "--follow")).out.strip()
    ended = await _apex(stack, "cancel", task[:12])
    assert ended.code == 0, ended.err
    assert "had ended before; it has succeeded" in ended.out
    for unknown in ("e" * 32, "eeeeeeee"):
        refused = await _apex(stack, "cancel", unknown)
        assert (refused.code, unknown in refused.err) == (4, True), refused.out
    async with stack.client() as client:
        assert await client.ended("e" * 32) is None


async def test_the_first_digits_do_for_every_command_that_takes_a_task(stack: Stack, tmp_path: Path) -> None:
    task = (await _apex(stack, "submit", WIFI, "--follow")).out.strip()
    await _until_listed(stack, task, "succeeded")
    assert task in (await _apex(stack, "show", task[:8])).out
    report = tmp_path / "task.html"
    assert (await _apex(stack, "report", task[:8], "-o", str(report))).code == 0
    assert task in report.read_text()
    replayed = await _apex(stack, "replay", task[:8], identity=Identity.OPERATOR)
    assert (replayed.code, "provider calls: " in replayed.out) == (0, True), replayed.err
    waits = await _apex(stack, "queue", task[:8])
    assert (waits.code, "it has succeeded" in waits.err) == (4, True)
    held = await _apex(stack, "approve", task[:8], identity=Identity.OPERATOR)
    assert (held.code, "waits for approval" in held.err) == (4, True)


async def test_a_raw_request_with_a_blank_goal_fails_with_a_reason(stack: Stack) -> None:
    async with stack.client() as client, stack.bus(Identity.CLIENT) as bus:
        before = {each.task for each in (await client.tasks(TasksQuery(status="failed"))).tasks}
        await bus.publish("request.any", '{"goal": " \u200b\\n"}'.encode())
        for _ in range(600):
            failed = (await client.tasks(TasksQuery(status="failed", failure="blank"))).tasks
            if found := [each for each in failed if each.task not in before]:
                assert "its goal is blank; say what is to be done" in (found[0].failure_reason or "")
                return
            await asyncio.sleep(0.1)
    pytest.fail("the blank request did not end")


async def test_bytes_that_are_no_text_are_refused_with_a_sentence(stack: Stack) -> None:
    ran = await _apex(stack, "submit", "turn on \udcff")
    assert (ran.code, ran.err) == (2, "apex: the command line holds bytes that are no text in UTF-8\n")


@asynccontextmanager
async def _paused(stack: Stack) -> AsyncGenerator[None]:
    """While the phone takes no task."""
    assert (await _apex(stack, "devices", "pause", "sim-1", identity=Identity.OPERATOR)).code == 0
    try:
        yield
    finally:
        assert (await _apex(stack, "devices", "resume", "sim-1", identity=Identity.OPERATOR)).code == 0


async def test_a_raw_request_of_a_bare_client_without_credentials_runs(stack: Stack) -> None:
    client = await nats.connect(stack.nats.url)
    try:
        ends = await client.subscribe("task.*.*.end.finished")
        ack = await client.request("request.any", b'{"goal": "turn on Wi-Fi"}', timeout=20)
        assert json.loads(ack.data)["stream"] == "REQUESTS"
        end = await ends.next_msg(timeout=60)
        while envelope.decode(end.data).body.goal != "turn on Wi-Fi":  # the end of an earlier test's task
            end = await ends.next_msg(timeout=60)
    finally:
        await client.close()
    await _until_listed(stack, end.subject.split(".")[2], "succeeded")


async def test_no_seed_and_no_password_reach_a_service_that_is_not_theirs(stack: Stack) -> None:
    folder = stack.directory / "credentials" / "database"
    passwords = [file.read_text() for file in folder.glob("*.password")]
    assert len(passwords) == 3
    seeds = {str(path) for path in stack.wiring.seeds.values()}
    for name, child in stack.children.items():
        environ = _environment(child.pid)
        held = [variable for variable, value in environ.items() if value in seeds]
        assert held == ([] if name in ("phone", "model") else ["APEX_NATS_SEED_FILE"]), name
        assert not [value for value in environ.values() for password in passwords if password in value], name
        named = environ.get("PGPASSFILE")
        assert named == (str(folder / "writer.pgpass") if name == "decision-log" else None), name
        assert ("ANTHROPIC_API_KEY" in environ) is (name == "planner-decision"), name
        assert environ.keys().isdisjoint({"USER", "SHELL", "PYTEST_CURRENT_TEST"}), name


async def test_the_decision_log_writes_as_on_the_lab_host_with_the_rights_of_a_writer(stack: Stack) -> None:
    connection = await asyncpg.connect(stack.database_url)
    try:
        sessions = await connection.fetch(
            "select usename::text from pg_stat_activity where backend_type = 'client backend'"
            " and pid <> pg_backend_pid()"
        )
        assert {row["usename"] for row in sessions} == {"apex_writer"}
        owners = await connection.fetch("select distinct tableowner::text from pg_tables where schemaname = 'public'")
        assert [row["tableowner"] for row in owners] == ["apex_owner"]
    finally:
        await connection.close()
    writer = await asyncpg.connect(
        stack.wiring.database_url, passfile=str(stack.directory / "credentials" / "database" / "writer.pgpass")
    )
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await writer.execute("delete from tasks")
    finally:
        await writer.close()


def _environment(pid: int | None) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)
