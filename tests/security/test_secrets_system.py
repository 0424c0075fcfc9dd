"""The whole system types secrets, and their values are looked for in everything that it keeps, logs and sends.

The stores are read as bytes: streams of NATS, tables of Postgres, logs of all services, spans on the wire, prompts as
the provider got them, and the report. The phone alone has the values, in its log of acts. So is the provider's key.
"""

import asyncio
import base64
import html
import json
import random
import string
import urllib.parse
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import aiohttp
import asyncpg
import components
import pytest
import pytest_asyncio
from integration.otlp_receiver import Receiver, otlp_receiver

from apex_cli.money import money
from apex_cli.report.page import page
from apex_lab.stack import Stack
from apex_lab.stack.recorded import recorded
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
SEED = 20261130


def awkward(chance: random.Random) -> str:
    """A value of what has to be escaped somewhere: in JSON, HTML, SQL, URLs, regular expressions, page sources."""
    letters = string.ascii_letters + string.digits + "\"'<>&%\\/;:{}[]()*+?^$|#-éßΩжי漢"
    return chance.choice(string.ascii_letters) + "".join(chance.choices(letters, k=chance.randint(6, 20)))


AWKWARD = {f"AWKWARD_{n}": awkward(random.Random(SEED + n)) for n in range(4)} | {"FOREIGN": "Пароль «жар-птица» №7"}


def contact(name: str) -> str:
    return (
        f'open Contacts, tap "Create contact", type "{{{{secret:{name}}}}}" into "Name", '
        f'tap "Save", then check "{{{{secret:{name}}}}}"'
    )


CONTACT = contact("PHRASE")
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
            timeline = await recorded(client, task, seconds=60)
            assert timeline.summary.status != "running", timeline
            async with asyncio.timeout(60):
                while not any(span.name == "task" for span in self.exported.of(task)):
                    await asyncio.sleep(0.1)
        return ended, timeline

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

    async def report(self, task: str) -> bytes:
        async with self.stack.client() as client:
            return page(await client.timeline(task, scenes=True), money({})).encode()


def _files(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Whole]:
    components.nats()
    components.postgres()
    folder = tmp_path_factory.mktemp("stack")
    file = folder / "secrets.json"
    file.write_text(
        json.dumps({**AWKWARD, "PHRASE": PHRASE, "WIFI": {"value": PASSWORD, "apps": ["com.android.settings"]}})
    )
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
    """Where the value stands, as it is or in a form that something on its way may have given it."""
    plain = {value, value.upper(), value.lower(), json.dumps(value)[1:-1], repr(value)[1:-1], html.escape(value)}
    plain |= {json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value, quote=False), urllib.parse.quote(value)}
    plain |= {json.dumps(each)[1:-1] for each in plain}  # JSON within JSON: prompts, records of raw answers
    forms = {each.encode() for each in plain} | {value.encode("utf-16-le"), base64.b64encode(value.encode())}
    return [place for place, data in kept if any(form in data for form in forms)]


async def test_a_value_is_found_in_whatever_form_it_is_kept() -> None:
    for value in AWKWARD.values():
        inner = json.dumps({"typed": value})
        texts = [
            value,
            inner,
            json.dumps({"raw": inner}),
            f"<td>{html.escape(value)}</td>",
            repr([value]),
            value.upper(),
        ]
        kept = [(str(n), text.encode()) for n, text in enumerate(texts)]
        assert len(holding(kept, value)) == len(kept), value
        assert holding(kept, "another value") == []


async def test_a_value_that_is_shown_later_on_is_on_the_phone_and_nowhere_else(whole: Whole) -> None:
    ended, timeline = await whole.run(CONTACT, "PHRASE")
    assert ended.status == "succeeded", ended.failure_reason  # its last step sees the name in the value's place
    assert PHRASE in await typed_on(whole)
    assert len(timeline.steps) >= 5
    kept = [*await whole.kept(), ("report", await whole.report(timeline.summary.task))]
    assert holding(kept, PHRASE) == []
    named = holding(kept, "{{secret:PHRASE}}")
    assert "prompts" in named
    assert any(place.startswith("table ") for place in named)
    assert any("/nats/" in place for place in named), "the streams are read as they lie on the disk"
    assert "spans and metrics" in named
    assert "report" in named


@pytest.mark.parametrize("name", AWKWARD)
async def test_no_value_however_awkward_is_kept_in_any_form(whole: Whole, name: str) -> None:
    value = AWKWARD[name]
    await whole.stack.phones.reset("sim-1")
    ended, timeline = await whole.run(contact(name), name)
    assert json.dumps(value, ensure_ascii=False) in await typed_on(whole), (value, ended)
    kept = [*await whole.kept(), ("report", await whole.report(timeline.summary.task))]
    assert holding(kept, value) == [], value
    assert ended.status == "succeeded", (value, ended.failure_reason)


@pytest.mark.parametrize("fault", ["ascii_only", "nothing", "appended"])
async def test_a_value_that_was_not_typed_as_it_should_be_is_in_no_error(whole: Whole, fault: str) -> None:
    await whole.stack.phones.reset("sim-1")
    await whole.stack.phones.set_faults("sim-1", {"typing": fault})
    _, timeline = await whole.run(contact("FOREIGN"), "FOREIGN")
    assert any("FOREIGN" in str(step.arguments) for step in timeline.steps)
    kept = [*await whole.kept(), ("report", await whole.report(timeline.summary.task))]
    assert holding(kept, AWKWARD["FOREIGN"]) == []


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
