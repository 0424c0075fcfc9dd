"""The documentation is true: what it says to run runs, what it names is there, what is generated is as generated."""

import ast
import asyncio
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import asyncpg
import click
import components
import pytest
import pytest_asyncio
from integration.docs_pages import PAGES, ROOT, Block, blocks, every_block

from apex_cli.app import apex
from apex_lab.stack import Stack
from apex_schemas.queries import TasksQuery
from apex_schemas.task import TaskRequest

RUN = [block for block in every_block() if "run" in block.words]
SHELL = [block for block in every_block() if block.language == "sh"]
SQL = [block for block in every_block() if block.language == "sql" and "reference" not in block.page]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    components.nats()
    components.postgres()
    async with Stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, stack: Stack) -> Path:
    """Where a reader would type: `./apex` is there, and finds the stack as a running `apex up` is found."""
    here = tmp_path_factory.mktemp("reader")
    launcher = here / "apex"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(here / "cli.py"))} "$@"\n')
    launcher.chmod(0o755)
    # The operator's key is taken where the command is the operator's, as beside an `apex up`.
    seeds = {"client": str(stack.wiring.seeds["client"]), "operator": str(stack.wiring.seeds["operator"])}
    (here / "cli.py").write_text(
        "import os, sys\n"
        f"seeds = {seeds!r}\n"
        "os.environ['APEX_NATS_SEED_FILE'] = seeds['operator' if '--prompts' in sys.argv else 'client']\n"
        "from apex_cli.app import main\n"
        "sys.exit(main())\n"
    )
    return here


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.xdist_group("docs")
@pytest.mark.parametrize("block", RUN, ids=lambda block: f"{block.page}: {block.commands[0][:40]}")
async def test_commands_of_the_docs_do_what_they_say(block: Block, stack: Stack, folder: Path) -> None:
    await _recorded(stack)
    script = "set -e\n" + block.code
    environ = {**os.environ, "APEX_NATS_URL": stack.nats.url}
    done = await asyncio.to_thread(
        subprocess.run, ["sh", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=150,
        check=False,
    )  # fmt: skip
    written = done.stdout + done.stderr
    assert done.returncode == 0, written
    for line in block.prints:
        wanted = ".*".join(re.escape(part.strip()) for part in line.split("…"))
        assert re.search(wanted, written), f"{line!r} is not in {written}"


async def _recorded(stack: Stack) -> None:
    """A reader has run a task before, and it is in the database, as are those of earlier blocks."""
    async with stack.client() as client:
        if not (await client.tasks(TasksQuery())).tasks:
            await client.submit(TaskRequest(goal="Turn on Wi-Fi and report the network name"), "any")
        for _ in range(300):
            tasks = (await client.tasks(TasksQuery())).tasks
            if tasks and all(task.status != "running" for task in tasks):
                return
            await asyncio.sleep(0.1)
    raise AssertionError("the tasks of the docs did not end")


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.xdist_group("docs")
@pytest.mark.parametrize("block", SQL, ids=lambda block: f"{block.page}: {block.code.split()[1]}")
async def test_queries_of_the_docs_run(block: Block, stack: Stack) -> None:
    connection = await asyncpg.connect(stack.database_url)
    try:
        await connection.fetch(block.code)
    finally:
        await connection.close()


def test_there_is_something_to_run_on_every_page_for_users() -> None:
    for page in (
        "docs/tutorial.md",
        "docs/howto/look-at-a-task.md",
        "docs/howto/saved-screens.md",
        "docs/howto/scripts.md",
    ):
        assert [block for block in RUN if block.page == page], page


@pytest.mark.parametrize("block", SHELL, ids=lambda block: f"{block.page}: {block.code.splitlines()[0][:40]}")
def test_every_apex_command_in_the_docs_is_one_with_these_options(block: Block) -> None:
    for command in block.commands:
        for words in _apex_calls(command):
            with pytest.MonkeyPatch.context():
                _parse(words)


def _apex_calls(command: str) -> list[list[str]]:
    """The arguments of each call of ./apex in a line."""
    found = re.findall(r"\./apex ([^|)>;&]*)", command)
    return [[word for word in shlex.split(call.partition(" #")[0]) if word != "…"] for call in found]


def _parse(words: list[str]) -> None:
    context = click.Context(apex, info_name="apex")
    command = apex.get_command(context, words[0])
    assert command is not None, f"there is no command {words[0]}"
    arguments = ["0123456789abcdef0123456789abcdef" if word in ("$task", "TASK") else word for word in words[1:]]
    command.make_context(words[0], arguments, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_docs_lead_somewhere(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), target


def test_what_troubleshooting_quotes_is_said_by_the_code() -> None:
    said = _texts_of_the_code()
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = [
        words
        for line in page.splitlines()
        if line.startswith("| `")
        for words in re.findall(r"`([^`]+)`", line.split("|")[1])
    ]
    assert len(quoted) > 30
    missing = [words for words in quoted if words not in said]
    assert not missing


def _texts_of_the_code() -> str:
    """All string literals, the parts of formatted ones joined as they are written."""
    texts: list[str] = []
    for source in [*ROOT.glob("*/src/**/*.py"), *ROOT.glob("services/*/src/**/*.py")]:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(_part(value) for value in node.values))
    return "\n".join(texts)


def _part(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    return "planner" if isinstance(value, ast.FormattedValue) and ast.unparse(value.value) == "service" else ""


def test_reference_pages_are_as_generated() -> None:
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    for file, text in pages.items():
        assert (ROOT / file).read_text(encoding="utf-8") == text, f"{file}: run `python docs/generate.py`"


def test_blocks_for_reading_follow_the_commands_that_print_them() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert not (block.prints and "run" in block.words and not block.commands)
