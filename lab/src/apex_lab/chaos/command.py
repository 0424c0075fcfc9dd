"""`apex chaos`: a run, its account printed, and exit code 1 when anything that must be zero is not."""

import random
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from apex_cli.errors import CommandError, NotInstalled
from apex_cli.place import clone
from apex_cli.text import console, styled
from apex_lab.chaos import run as chaos_run
from apex_lab.chaos.account import Report
from apex_lab.chaos.errors import ChaosError
from apex_lab.chaos.run import Plan
from apex_lab.demo import running


class ChaosFailed(CommandError):
    def __init__(self, report: Report, seed: int) -> None:
        listed = "".join(f"\n  - {each}" for each in report.wrong)
        super().__init__(f"the account does not hold (seed {seed}):{listed}")
        self.report = report


@click.command(short_help="Tasks while everything is killed, then an account.")
@click.option("--minutes", type=click.FloatRange(0.2, 1_440), default=2.0, show_default=True, help="Of trouble.")
@click.option("--seed", type=int, help="Of the trouble and the load. Default: a new one, which is printed.")
@click.option("--phones", type=click.IntRange(1, 50), default=5, show_default=True, help="Simulated phones.")
@click.option("--json", "as_json", is_flag=True, help="The account as JSON; progress goes to the error output.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where its files go. Default: .apex/chaos.")
def chaos(minutes: float, seed: int | None, phones: int, as_json: bool, directory: Path | None) -> None:
    """Tasks on simulated phones while everything is killed, paused, restarted, cut off and slowed; then an account.

    The phones' own act logs are compared with the task log, the provider's calls and Postgres. Exit code 1 when
    anything is lost, doubled, late or missing, and when no kill fell into an act.
    """
    root = clone()
    if root is None and directory is None:
        raise NotInstalled("a clone to keep the run's files in")
    directory = directory or (root or Path()) / ".apex" / "chaos"
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    aside = console(stderr=True)
    aside.print(f"chaos: seed {seed}, {minutes:g} minutes, {phones} phones; files in {directory}")
    plan = Plan(minutes=minutes, seed=seed, phones=phones)
    try:
        report = running.run(chaos_run.run(plan, directory, lambda text: aside.print(styled((f"  … {text}", "dim")))))
    except ChaosError as error:
        raise CommandError(str(error)) from error
    if as_json:
        told = {"seed": seed, "minutes": minutes, "phones": phones, **msgspec.to_builtins(report)}
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
    else:
        show(report, seed, console())
    if report.wrong:
        raise ChaosFailed(report, seed)


def show(report: Report, seed: int, out: Console) -> None:
    """The account as a person reads it."""
    table = Table("must be zero", "", box=None, pad_edge=False)
    for name, count in report.zeros.items():
        table.add_row(name.replace("_", " "), styled((str(count), "bold red" if count else "green")))
    out.print(f"seed {seed}")
    out.print(table)
    for name, value in report.counts.items():
        out.print(f"{name.replace('_', ' ')}: {value}", markup=False)
    out.print(f"recovery, seconds to the next slot of a running task: {report.recovery_s}", markup=False)
    for name, stages in report.kills_by_stage.items():
        out.print(f"kills of {name} by stage of the tasks that ran: {stages}", markup=False)
    for name, where in report.examples.items():
        for each in where:
            out.print(f"  {name}: {each}", markup=False)
