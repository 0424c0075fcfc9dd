"""report: a task as one HTML file, to look at, to keep, to send to somebody."""

import os
from pathlib import Path

import click

from apex_cli import lookup
from apex_cli.client import run
from apex_cli.errors import BadInput
from apex_cli.lookup import task_id
from apex_cli.money import money
from apex_cli.place import clone, find
from apex_cli.report.page import page


@click.command(short_help="A task as one HTML file that explains it.")
@click.argument("task", required=False, callback=task_id)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="Default: apex-TASK.html here; - is the standard output.")  # fmt: skip
def report(task: str | None, output: Path | None) -> None:
    """TASK as one self-contained HTML file: screens, reasons, outcomes, times, tokens, cost; or the last task.

    The file needs no network and no script. It holds what the screens said and what the model thought, but neither
    prompts nor pictures.
    """
    prices = money(os.environ)
    timeline = run(find(os.environ, clone()), lambda client: lookup.timeline(client, task, scenes=True))
    written = page(timeline, prices)
    if output == Path("-"):
        click.echo(written, nl=False)
        return
    file = output or Path(f"apex-{timeline.summary.task}.html")
    try:
        file.write_text(written, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error
    click.echo(file)
