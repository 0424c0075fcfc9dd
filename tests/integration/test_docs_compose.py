"""Export, retention, backup and restore on the lab host, by the very commands of the how-to pages."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import components
import pytest
from integration.compose_lab import FILES, ROOT, Lab
from integration.docs_pages import blocks

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1_200), pytest.mark.xdist_group("docs-compose")]

WIFI = "turn on Wi-Fi and report the network name"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    components.docker()
    lab = Lab()
    try:
        lab.command("--profile", "cli", "build", "--quiet", timeout_s=1_000)
        lab.up()
        yield lab
    finally:
        lab.down()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("operator")


def _page(name: str, containing: str) -> list[str]:
    """The shell blocks of a page that hold a word, as they stand there."""
    found = [block.code for block in blocks(ROOT / "docs" / "howto" / name) if block.language == "sh"]
    chosen = [code for code in found if containing in code]
    assert chosen, f"{name} has no block with {containing}"
    return chosen


def _run(lab: Lab, folder: Path, code: str) -> str:
    """As an operator types it, in a project of its own."""
    environ = {
        **os.environ,
        "COMPOSE_PROJECT_NAME": lab.project,
        "COMPOSE_FILE": ":".join(str(ROOT / name) for name in FILES),
        "APEX_NATS_PORT": str(lab.nats_port),
        "APEX_PHONES_PORT": str(lab.phones_port),
        "APEX_OTLP_ENDPOINT": "",
    }
    script = "set -e\n" + code.replace("apex_nats-store", f"{lab.project}_nats-store")
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=300,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{code}\n{done.stdout[-2_000:]}{done.stderr[-4_000:]}"
    return done.stdout


def _task(lab: Lab) -> str:
    out = lab.command("--profile", "cli", "run", "--rm", "-T", "cli", "submit", WIFI, "--follow", timeout_s=180)
    return out.strip().splitlines()[-1]


def test_the_log_is_exported_as_lines_of_json(lab: Lab, folder: Path) -> None:
    task = _task(lab)
    [code] = _page("queries.md", "apex_decision_log.export")
    _run(lab, folder, code.replace("2026-11-01", "2020-01-01"))
    for name in ("decisions", "steps", "tasks"):
        lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        assert task in {line["task_id"] for line in lines}, name


def test_the_retention_job_runs_as_the_owner(lab: Lab, folder: Path) -> None:
    [code] = _page("queries.md", "apex_decision_log.retention")
    said = _run(lab, folder, code)
    assert "would delete 0 tasks" in said
    assert "deleted 0 tasks" in said


def test_analysts_get_a_password_and_see_views_alone(lab: Lab, folder: Path) -> None:
    _task(lab)
    [code] = _page("queries.md", "apex_reader password")
    first = code.splitlines()[0].replace("exec postgres", "exec -T postgres").replace("…", "letmein")
    assert "ALTER ROLE" in _run(lab, folder, first)
    query = "env PGPASSWORD=letmein psql -U apex_reader -h 127.0.0.1 -d apex -At -c"
    assert _run(lab, folder, f"docker compose exec -T postgres {query} 'select count(*) from v_tasks'").strip() >= "1"
    with pytest.raises(AssertionError, match="permission denied"):
        _run(lab, folder, f"docker compose exec -T postgres {query} 'select count(*) from tasks'")


def test_the_database_is_dumped_lost_and_restored(lab: Lab, folder: Path) -> None:
    before = lab.sql("select count(*), max(task_id) from tasks")
    [dump] = _page("backup.md", "pg_dump")
    _run(lab, folder, dump)
    lab.command("stop", "decision-log")
    lab.sql("drop table tasks, steps, scenes, planner_decision_log cascade")
    [restore] = _page("backup.md", "pg_restore")
    _run(lab, folder, restore)
    assert lab.sql("select count(*), max(task_id) from tasks") == before
    assert _task(lab) != before[0][1]


def test_the_store_of_nats_is_copied_and_put_back_and_tasks_go_on(lab: Lab, folder: Path) -> None:
    task = _task(lab)
    copy, back = _page("backup.md", "docker compose stop nats")
    _run(lab, folder, copy)
    assert (folder / "nats-store.tgz").stat().st_size > 1_000
    _run(lab, folder, back)
    lab.command("up", "--detach", "--wait", "--wait-timeout", "120", timeout_s=200)
    assert len(_task(lab)) == 32
    shown = lab.command("--profile", "cli", "run", "--rm", "-T", "cli", "show", task, "--json")
    assert json.loads(shown)["summary"]["status"] == "succeeded"
