"""`apex demo`: three tasks on a simulated phone, watched, checked on the phone itself, and read back from Postgres.

It is as expected only if every task ended as it should, the phone's true state agrees, and Postgres holds each
decision as it was seen on the bus.
"""

import os
import time
from pathlib import Path

import click
from rich.console import Console
from rich.rule import Rule

from apex_cli.errors import CommandError, NotInstalled
from apex_cli.place import clone
from apex_cli.text import console, styled
from apex_lab.demo import readback, running
from apex_lab.demo.goals import GOALS
from apex_lab.demo.progress import Progress
from apex_lab.demo.provider import chosen_model, provider_options
from apex_lab.demo.watched import Watched, watch
from apex_lab.stack import Stack
from apex_lab.stack.services import Model, Provider


class DemoFailed(CommandError):
    def __init__(self, problems: list[str], logs: Path) -> None:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        super().__init__(f"the demo was not as expected:{listed}\n  the logs are in {logs}")
        self.problems = problems


@click.command()
@provider_options
@click.option("--directory", type=click.Path(path_type=Path), help="Where its files go. Default: .apex/demo.")
def demo(provider: Provider | None, model: str | None, directory: Path | None) -> None:
    """Three tasks on a simulated phone, from goal to database. Needs no phone, no key and no server.

    NATS, PostgreSQL, the services, the phone and a scripted model run as processes of this machine and end with the
    demo. Its files stay until the next one. It ends with 0 if all was as expected, 1 if not, and 6 if what it needs is
    missing.
    """
    root = clone()
    if root is None and directory is None:
        raise NotInstalled("a clone to keep the demo's files in")
    directory = directory or (root or Path()) / ".apex" / "demo"
    out = console()
    chosen = chosen_model(provider, model, os.environ, out)
    running.run(_demo(directory, chosen, out))


async def _demo(directory: Path, model: Model | None, out: Console) -> None:
    began = time.monotonic()
    progress = Progress(out)
    with progress:
        async with Stack(directory, model=model, fresh=True, report=progress.tell) as stack, stack.client() as client:
            took = f"Ready after {time.monotonic() - began:.1f} s"
            progress.say(f"{took}: four services and the planner-decision endpoint on NATS, one simulated phone.\n")
            watched: list[Watched] = []
            for number, goal in enumerate(GOALS, start=1):
                out.print(Rule(f"[bold]{number}/{len(GOALS)}[/]  {goal.text}", align="left", style="dim"))
                watched.append(await watch(goal, stack, client, out, progress))
            out.print(Rule("[bold]The same decisions, read back from Postgres[/]", align="left", style="dim"))
            readback.show(watched, out)
            progress.tell("ending everything that was started")
    problems = [f"{goal.text}: {problem}" for goal, one in zip(GOALS, watched, strict=True) for problem in one.problems]
    if problems:
        raise DemoFailed(problems, directory / "logs")
    out.print(
        styled(
            ("All as expected", "bold green"),
            f" after {time.monotonic() - began:.0f} s. Everything that was started has ended; the logs are in "
            f"{directory / 'logs'}.\nTo keep the same stack running: ./apex up",
        )
    )
