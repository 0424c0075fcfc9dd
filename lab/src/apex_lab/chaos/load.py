"""The load: tasks from a mix of playbooks, asked for while there is room, followed to their ends, some cancelled."""

import asyncio
import random
import time
from typing import Final, Literal, NamedTuple

from msgspec import structs

from apex_bus.errors import Transient
from apex_cli.client import Client
from apex_lab.chaos.evidence import Asked
from apex_schemas.task import TaskRequest

_TASK_SECONDS: Final = 300
_LOOK_S: Final = 0.5
_CANCELLED: Final = 0.04
_MANY: Final = 300
"""From then on fewer contacts: a phone that has very many makes long scrolling of each task."""


class Wish(NamedTuple):
    """A goal and what is to be true afterwards."""

    goal: str
    expected: Literal["succeeded", "failed"] = "succeeded"
    contact: str | None = None
    switch: tuple[str, bool] | None = None


def wish_of(rng: random.Random, number: int) -> Wish:
    """The goal of the `number`th task."""
    on = rng.random() < 0.5
    weights = (3, 1, 2, 1, 4 if number < _MANY else 1)
    match rng.choices(("wifi-name", "wifi", "bluetooth", "nfc", "contact"), weights)[0]:
        case "wifi-name":
            return Wish("turn on Wi-Fi and report the network name", switch=("wifi", True))
        case "nfc":
            return Wish("turn on NFC", expected="failed")
        case "contact":
            name = f"{rng.choice(('Ada', 'Björn', 'Chloé', 'Łukasz', 'Zoë'))} {number:04}"
            phone = f"0{rng.randrange(10**6, 10**7)}"
            return Wish(f'create a contact named "{name}" with phone {phone}', contact=name)
        case name:
            return Wish(f"turn {'on' if on else 'off'} {'Wi-Fi' if name == 'wifi' else 'Bluetooth'}", switch=(name, on))


class Load:
    """Asks for tasks so that about `ahead` are unfinished at a time. What was asked is in `asked`. They are numbered
    from `first` on: contacts have the number in their names."""

    def __init__(self, client: Client, *, seed: int, ahead: int, first: int = 1) -> None:
        self._client, self._rng, self._ahead = client, random.Random(f"load {seed}"), ahead
        self._first = first
        self._asked: dict[str, Asked] = {}
        self._open: set[str] = set()
        self._cancel_at: dict[str, float] = {}
        self._ending = asyncio.Event()

    @property
    def asked(self) -> tuple[Asked, ...]:
        return tuple(self._asked.values())

    @property
    def unfinished(self) -> frozenset[str]:
        return frozenset(self._open)

    async def keep_asking(self) -> None:
        """Until `end`; then the request that is on its way is still seen through."""
        while not self._ending.is_set():
            while len(self._open) < self._ahead and not self._ending.is_set():
                await self._ask()
            await self.look()
            await asyncio.sleep(_LOOK_S)

    def end(self) -> None:
        self._ending.set()

    async def _ask(self) -> None:
        wish = wish_of(self._rng, self._first + len(self._asked))
        request = TaskRequest(goal=wish.goal, task=self._rng.randbytes(16).hex(), timeout_s=_TASK_SECONDS)
        assert request.task is not None
        cancel_in_s = self._rng.uniform(0.5, 10) if self._rng.random() < _CANCELLED else None
        while True:
            try:
                await self._client.submit(request, "any")
                break
            except Transient:
                await asyncio.sleep(_LOOK_S)  # the same request under the same id: the system knows it again
        self._asked[request.task] = Asked(
            task=request.task, goal=wish.goal, expected=wish.expected, at_ms=time.time_ns() // 1_000_000,
            contact=wish.contact, switch=wish.switch,
        )  # fmt: skip
        self._open.add(request.task)
        if cancel_in_s is not None:
            self._cancel_at[request.task] = time.monotonic() + cancel_in_s

    async def look(self) -> None:
        """See which have ended, and cancel what is to be cancelled."""
        try:
            for task in list(self._open):
                if await self._client.ended(task) is not None:
                    self._open.discard(task)
                    self._cancel_at.pop(task, None)
                elif time.monotonic() > self._cancel_at.get(task, float("inf")):
                    await self._client.cancel(task, "chaos cancels it")
                    del self._cancel_at[task]
                    now = time.time_ns() // 1_000_000
                    self._asked[task] = structs.replace(self._asked[task], cancelled_at_ms=now)
        except Transient:
            return  # looked again in a moment
