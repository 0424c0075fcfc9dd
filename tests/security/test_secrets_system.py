"""The whole system types secrets, and their values are looked for in everything that it keeps, logs and sends.

The stores are read as bytes: streams of NATS, tables of Postgres, logs of all services, spans on the wire, prompts as
the provider got them. The phone alone has the values, in its log of acts. So is the provider's key.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import aiohttp
import asyncpg
import components
import pytest
import pytest_asyncio
from integration.otlp_receiver import Receiver, otlp_receiver

from apex_cli.client import Client
from apex_cli.errors import NotFound
from apex_lab.stack import Stack
from apex_lab.stack.services import MODULES
from apex_schemas.ids import new_task_id
from apex_schemas.queries import Timeline
from apex_schemas.task import TaskFinished, TaskRequest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("secrets-system"),
]

PHRASE = "Xanthippe Quuxbury"
PASSWORD = "guest-pass"
KEY = "sk-provider-key-Wobblegong"
CONTACT = (
    'open Contacts, tap "Create contact", type "{{secret:PHRASE}}" into "Name", '
    'tap "Save", then check "{{secret:PHRASE}}"'
)
NETWORK = (
    'open Settings, tap "Network & internet", tap "Wi-Fi", tap "Wi-Fi networks", tap "Lab-Guest", '
    'type "{{secret:WIFI}}" into "Password", then tap "Connect"'
)


class Whole:
    """The system, and what was exported of it."""

    def __init__(self, stack: Stack, exported: Receiver) -> None:
        self.stack, self.exported = stack, exported

    async def run(self, goal: str, *names: str) -> tuple[TaskFinished, Timeline]:
        task = new_task_id()
        request = TaskRequest(goal=goal, task=task, max_turns=15, timeout_s=90, secrets=names)
        async with self.stack.client() as client:
            async with client.following(task) as happenings:
                await client.submit(request, "any")
                ended = [each.body async for each in happenings][-1]
            assert isinstance(ended, TaskFinished)
            async with asyncio.timeout(20):
                while (timeline := await self._written(client, task)) is None:
                    await asyncio.sleep(0.1)
            async with asyncio.timeout(20):
                while not any(span.name == "task" for span in self.exported.of(task)):
                    await asyncio.sleep(0.1)
        return ended, timeline

    async def _written(self, client: Client, task: str) -> Timeline | None:
        """The timeline, once the end of the task has reached the database."""
        try:
            timeline = await client.timeline(task)
        except NotFound:
            return None
        return None if timeline.summary.status == "running" else timeline

    async def kept(self) -> list[tuple[str, bytes]]:
        """All that the system has stored, logged, sent and asked, by where it is."""
        folder = self.stack.directory
        found = [(str(path), path.read_bytes()) for path in _files(folder / "logs", folder / "nats")]
        found.append(("spans and metrics", repr((self.exported.spans, self.exported.points)).encode()))
        connection = await asyncpg.connect(self.stack.database_url)
        try:
            tables = await connection.fetch("select tablename from pg_tables where schemaname = 'public'")
            for name in (row["tablename"] for row in tables):
                rows = await connection.fetch(f'select t::text as row from "{name}" t')
                found.append((f"table {name}", "\n".join(row["row"] for row in rows).encode()))
        finally:
            await connection.close()
        base_url = self.stack.wiring.model.base_url
        async with aiohttp.ClientSession() as session, session.get(f"{base_url}/lab/model/calls") as reply:
            found.append(("prompts", await reply.read()))
        return found


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Whole]:
    components.nats()
    components.postgres()
    folder = tmp_path_factory.mktemp("stack")
    file = folder / "secrets.json"
    file.write_text(json.dumps({"PHRASE": PHRASE, "WIFI": {"value": PASSWORD, "apps": ["com.android.settings"]}}))
    async with otlp_receiver() as exported:
        loud = {
            "APEX_LOG_LEVEL": "DEBUG",
            "OTEL_EXPORTER_OTLP_ENDPOINT": exported.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
        }
        environment = {service: dict(loud) for service in MODULES}
        environment["executor"]["EXECUTOR_SECRETS_FILE"] = str(file)
        environment["perception"]["PERCEPTION_SECRETS_FILE"] = str(file)
        environment["planner-decision"]["ANTHROPIC_API_KEY"] = KEY
        async with Stack(folder, environment=environment) as stack:
            yield Whole(stack, exported)


async def typed_on(whole: Whole) -> str:
    return json.dumps(await whole.stack.phones.acts("sim-1"), ensure_ascii=False)


def holding(kept: list[tuple[str, bytes]], value: str) -> list[str]:
    return [place for place, data in kept if value.encode() in data]


async def test_a_value_that_is_shown_later_on_is_on_the_phone_and_nowhere_else(whole: Whole) -> None:
    ended, timeline = await whole.run(CONTACT, "PHRASE")
    assert ended.status == "succeeded", ended.failure_reason  # its last step sees the name in the value's place
    assert PHRASE in await typed_on(whole)
    assert len(timeline.steps) >= 5
    kept = await whole.kept()
    assert holding(kept, PHRASE) == []
    named = holding(kept, "{{secret:PHRASE}}")
    assert "prompts" in named
    assert any(place.startswith("table ") for place in named)
    assert "spans and metrics" in named


async def test_a_password_is_typed_into_its_app_and_kept_nowhere(whole: Whole) -> None:
    ended, _ = await whole.run(NETWORK, "WIFI")
    assert ended.status == "succeeded", ended.failure_reason
    assert '"wifi_network": "Lab-Guest"' in json.dumps(await whole.stack.phones.state("sim-1"))  # it was the right one
    assert holding(await whole.kept(), PASSWORD) == []


async def test_a_secret_that_the_task_does_not_name_is_not_typed(whole: Whole) -> None:
    await whole.stack.phones.reset("sim-1")
    _, timeline = await whole.run(CONTACT)
    assert PHRASE not in await typed_on(whole)
    assert "SECRET_NOT_ALLOWED" in {step.code for step in timeline.steps}


async def test_the_provider_s_key_is_kept_nowhere(whole: Whole) -> None:
    assert holding(await whole.kept(), KEY) == []
