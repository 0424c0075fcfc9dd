"""A task as Postgres has it: asked of the decision-log until it is complete there, also while that starts again."""

import asyncio
from collections.abc import Callable

from apex_cli.client import Client
from apex_cli.errors import NotFound, NotReachable
from apex_schemas.queries import Timeline


async def recorded(
    client: Client, task: str, *, seconds: float, whole: Callable[[Timeline], bool] = lambda _: True
) -> Timeline:
    """The task's timeline, once its end is recorded and `whole` holds; after `seconds`, what there is.

    Raises NotFound or NotReachable when until then there was nothing.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    found: Timeline | None = None
    while True:
        late = loop.time() > deadline
        try:
            found = await client.timeline(task)
            if found.summary.status != "running" and whole(found):
                return found
        except (NotFound, NotReachable):
            if late and found is None:
                raise
        if late and found is not None:
            return found
        await asyncio.sleep(0.1)
