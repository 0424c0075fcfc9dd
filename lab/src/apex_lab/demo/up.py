"""`apex up`: the embedded stack, kept running. Owns .apex/up and the file by which other commands find it."""

import asyncio
import os
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console

from apex_cli.errors import CommandError, NotInstalled
from apex_cli.place import RunningStack, clone, running_stack, state_file
from apex_cli.text import console, styled
from apex_lab.demo import running
from apex_lab.demo.provider import chosen_model, provider_options
from apex_lab.stack import Stack
from apex_lab.stack.services import MODULES, SCRIPTED_MODEL, Model, Provider
from apex_schemas.subjects import Identity

HOW_TO_USE: Final = """
  ./apex submit "turn on Wi-Fi and report the network name" --follow
  ./apex show          the last task, turn by turn
  ./apex report        the same as one page for a browser
  ./apex tasks         all tasks
  ./apex devices       the phones

or any NATS client, as the guest:
  nats req --server {nats} request.any '{{"goal": "turn on Wi-Fi"}}'

the phone's screen:  {phone}/lab/phones/sim-1/screen.png
logs:                {logs}
{model}
Ctrl-C ends everything."""
PLAN: Final = """
one decision of the scripted model on a saved screen:
  ./apex plan --scene FILE --goal "turn on Wi-Fi" --model {model} --base-url {url}
"""


@click.command()
@click.option("--phones", type=click.IntRange(1, 50), default=1, show_default=True, help="Simulated phones.")
@provider_options
@click.option("--fresh", is_flag=True, help="Forget the tasks of earlier runs.")
@click.option("--nats-port", type=click.IntRange(0, 65_535), default=0, help="0 takes a free one.", show_default=True)
def up(phones: int, provider: Provider | None, model: str | None, fresh: bool, nats_port: int) -> None:
    """The demo's stack, kept running until Ctrl-C. Tasks stay in .apex/up for the next time.

    OTEL_* variables are the services' as well, so that OTEL_EXPORTER_OTLP_ENDPOINT sends traces and metrics. A clone
    has one stack at a time: a second `up` ends at once with 1, a port that cannot be had with 5.
    """
    root = clone()
    if root is None:
        raise NotInstalled("a clone to keep the stack's files in")
    if running_stack(root) is not None:
        raise CommandError(f"a stack is already up in {root}; `apex devices` asks it, Ctrl-C in its terminal ends it")
    out = console()
    chosen = chosen_model(provider, model, os.environ, out)
    running.run(keep_up(root, phones=phones, model=chosen, fresh=fresh, nats_port=nats_port, out=out))


async def keep_up(root: Path, *, phones: int, model: Model | None, fresh: bool, nats_port: int, out: Console) -> None:
    """Run until cancelled. Raises StackError, ServiceFailed among them, when a service cannot go on."""

    def report(text: str) -> None:
        out.print(styled((f"  … {text}", "dim")))

    directory = root / ".apex" / "up"
    telemetry = {name: value for name, value in os.environ.items() if name.startswith("OTEL_")}
    stack = Stack(
        directory,
        phones=phones,
        model=model,
        environment={service: telemetry for service in MODULES},
        fresh=fresh,
        nats_port=nats_port,
        report=report,
    )
    async with stack:
        state = RunningStack(
            pid=os.getpid(),
            nats_url=stack.nats.url,
            seed_file=str(stack.wiring.seeds[Identity.CLIENT]),
            phone_url=stack.phones.url,
            logs=str(stack.logs),
        )
        file = state_file(root)
        try:
            file.write_bytes(msgspec.json.encode(state))
            out.print(styled(("The stack is up.", "bold green"), " In another terminal:"))
            out.print(
                HOW_TO_USE.format(
                    nats=state.nats_url, phone=state.phone_url, logs=state.logs, model=_plan(stack.wiring.model)
                ),
                markup=False,
            )
            await asyncio.gather(*(child.failed for child in stack.children.values()))
        finally:
            file.unlink(missing_ok=True)
            out.print("ending everything that was started")


def _plan(model: Model) -> str:
    """How the scripted model is asked directly; nothing of a provider's own model, which costs money."""
    return PLAN.format(model=model.model, url=model.base_url) if model.model == SCRIPTED_MODEL else ""
