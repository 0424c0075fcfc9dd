"""The generated descriptions of the wire: `schemas/schema.json` and `docs/SUBJECTS.md`.

Run `python -m apex_schemas.generate ROOT` to write both; the contract tests compare them with what is committed.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec

from apex_schemas import decision, devices, queries, task
from apex_schemas.consumers import consumers
from apex_schemas.envelope import KINDS
from apex_schemas.streams import STREAMS
from apex_schemas.subjects import TABLE, Row

_UNENVELOPED = (
    task.TaskRequest,
    task.Approval,
    decision.DecisionRequest,
    decision.ToolCallDecision,
    decision.DecisionFault,
    decision.DecisionProgress,
    devices.SessionRequest,
    devices.SessionReply,
    devices.DeviceStatus,
    devices.DeviceControl,
    devices.HandledAgain,
    queries.TimelineQuery,
    queries.Timeline,
    queries.TasksQuery,
    queries.TaskList,
    queries.DecisionsQuery,
    queries.RecordedDecisions,
    queries.WaitingRequests,
    queries.QueryError,
)


def payload_types() -> dict[str, type[msgspec.Struct]]:
    """Every type that travels on its own, by kind where it is enveloped, else by its name."""
    return {**KINDS, **{type_.__name__: type_ for type_ in _UNENVELOPED}}


def schema_json() -> str:
    types = payload_types()
    refs, components = msgspec.json.schema_components(types.values(), ref_template="#/$defs/{name}")
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Messages of Apex Agent",
        "messages": dict(zip(types, refs, strict=True)),
        "$defs": dict(sorted(components.items())),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _cell(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "—"


def _line(row: Row) -> str:
    payload = row.payload.replace("|", "or")
    cells = (f"`{row.pattern}`", payload, row.stream or "core", _cell(row.writers), _cell(row.triggers))
    return "| " + " | ".join((*cells, _cell(row.reads), _cell(row.follows), row.fence or "—", row.note)) + " |"


def subjects_md() -> str:
    lines = [
        "# Subjects",
        "",
        "Generated from subjects, streams and consumers of `apex_schemas`; do not edit, run",
        "`python -m apex_schemas.generate .`.",
        "",
        "| subject | payload | stream | written by | triggers | read back by | followed by | fence | what it is |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_line, TABLE),
        "",
        "## Streams",
        "",
        "| stream | subjects | kept | at most | when full | a subject |",
        "|---|---|---|---|---|---|",
    ]
    for stream in STREAMS:
        kept = f"{stream.max_age_s / 3600:g} h" if stream.max_age_s else "for ever"
        each = "written once" if stream.once else "last message only" if stream.last_only else "many"
        lines.append(
            f"| {stream.name} | {', '.join(f'`{s}`' for s in stream.subjects)} | {kept} "
            f"| {stream.max_bytes // 2**20} MiB | {stream.full} | {each} |"
        )
    lines += [
        "",
        "## Consumers",
        "",
        "`<device>` stands for each device of the installation.",
        "",
        "| consumer | stream | filter | pulled by | ack wait | pending at most |",
        "|---|---|---|---|---|---|",
    ]
    for consumer in consumers(("<device>",)):
        lines.append(
            f"| {consumer.name} | {consumer.stream} | {', '.join(f'`{f}`' for f in consumer.filters)} "
            f"| {consumer.identity} | {consumer.ack_wait_s:g} s | {consumer.max_ack_pending} |"
        )
    return "\n".join(lines) + "\n"


def write(root: Path) -> None:
    (root / "schemas" / "schema.json").write_text(schema_json(), encoding="utf-8")
    (root / "docs" / "SUBJECTS.md").write_text(subjects_md(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
