"""Runs a phone server: ``python -m apex_lab.phone --phones 3`` prints one line of JSON when it is ready."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence

import click

from apex_lab.phone import Phone, recorded_phones, serve
from apex_lab.phone.errors import RecordingError
from apex_lab.phone.handset import Handset


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=4723, show_default=True, help="Port; 0 takes a free one.")
@click.option("--phones", default=1, show_default=True, help="How many simulated phones: sim-1, sim-2, …")
@click.option("--ios", default=0, show_default=True, help="How many simulated iOS phones: ios-1, ios-2, …")
@click.option("--ios-scale", type=click.Choice(["2", "3"]), default="3", show_default=True, help="Their scale.")
@click.option("--recorded", type=click.Path(), help="Folder of page sources: adds rec-android and rec-ios.")
@click.option("--stay", is_flag=True, help="The recorded phones keep their screen instead of showing the next.")
@click.option("--size", default="540x1200", show_default=True, help="Pixels of the simulated Android screens.")
@click.option("--no-permission-popup", is_flag=True, help="Contacts does not ask for its permission.")
def main(
    host: str,
    port: int,
    phones: int,
    ios: int,
    ios_scale: str,
    recorded: str | None,
    stay: bool,
    size: str,
    no_permission_popup: bool,
) -> None:
    """Serves simulated phones to Appium clients."""
    try:
        width, height = (int(part) for part in size.split("x"))
    except ValueError as error:
        raise click.BadParameter(f"{size!r} is not WIDTHxHEIGHT", param_hint="--size") from error
    all_phones = [
        Phone(f"sim-{n}", width=width, height=height, permission_popup=not no_permission_popup)
        for n in range(1, phones + 1)
    ] + [
        Phone(f"ios-{n}", platform="ios", scale=int(ios_scale), permission_popup=not no_permission_popup)
        for n in range(1, ios + 1)
    ]
    try:
        others = recorded_phones(recorded, advance=not stay) if recorded else []
    except RecordingError as error:
        raise click.ClickException(str(error)) from error
    asyncio.run(_run([*all_phones, *others], host, port))


async def _run(phones: Sequence[Handset], host: str, port: int) -> None:
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    async with serve(phones, host=host, port=port) as url:
        print(json.dumps({"url": url, "phones": [phone.udid for phone in phones]}), flush=True)
        await stop.wait()


if __name__ == "__main__":
    main()
