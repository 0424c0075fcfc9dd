"""`python -m apex_lab.model --host 127.0.0.1 --port 0`: prints one JSON line with the URL, then serves until ended."""

import asyncio
import json
import signal

import click

from apex_lab.model.server import serve


async def _run(host: str, port: int) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with serve(host=host, port=port) as url:
        print(json.dumps({"url": url, "scripted": True}), flush=True)
        await ended.wait()


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on")
@click.option("--port", default=0, show_default=True, help="port to listen on; 0 takes a free one")
def main(host: str, port: int) -> None:
    """Serve the scripted model: Anthropic Messages, OpenAI Chat Completions and Responses."""
    asyncio.run(_run(host, port))


if __name__ == "__main__":
    main()
