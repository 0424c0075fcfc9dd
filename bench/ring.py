"""A bare three-hop JetStream ring, to have a yardstick of the same machine and moment: consume, publish, acknowledge,
three times, is the least that a turn of three services can cost."""

import asyncio
import time
from pathlib import Path

import msgspec

from apex_bus.connection import Bus, connect
from apex_bus.consume import Delivery
from apex_bus.pull import Pull
from apex_bus.settings import BusSettings
from apex_lab.embedded.nats import nats_server
from apex_schemas.consumers import Consumer
from apex_schemas.subjects import Identity

HOPS = ("a", "b", "c")
_PAYLOAD = b"x" * 3_000


async def ring_seconds(directory: Path, rounds: int) -> list[float]:
    """Seconds of each round through three hops, on a NATS server of its own with the same settings."""
    async with nats_server(directory) as server:
        buses = [await connect(Identity.PROVISIONER, BusSettings(url=server.url)) for _ in HOPS]
        await _lay_out(buses[0])
        finished: asyncio.Queue[float] = asyncio.Queue()
        hops = [asyncio.create_task(_hop(bus, n, finished)) for n, bus in enumerate(buses)]
        times: list[float] = []
        for _ in range(rounds):
            began = time.perf_counter()
            await buses[0].publish("ring.a", _PAYLOAD)
            times.append(await finished.get() - began)
        for hop in hops:
            hop.cancel()
        await asyncio.gather(*hops, return_exceptions=True)
        for bus in buses:
            await bus.close()
        return times


async def _lay_out(bus: Bus) -> None:
    stream = {"name": "RING", "subjects": ["ring.*"], "storage": "file", "allow_direct": True}
    await bus.api("STREAM.CREATE.RING", msgspec.json.encode(stream))
    for name in HOPS:
        config = {"name": name, "durable_name": name, "ack_policy": "explicit", "filter_subject": f"ring.{name}"}
        body = {"stream_name": "RING", "config": config}
        await bus.api(f"CONSUMER.CREATE.RING.{name}", msgspec.json.encode(body))


async def _hop(bus: Bus, n: int, finished: "asyncio.Queue[float]") -> None:
    consumer = Consumer(name=HOPS[n], stream="RING", filters=(), identity=Identity.PROVISIONER)
    async with Pull(bus, consumer) as pull:
        while True:
            msg = await pull.next(1)
            if msg is None:
                continue
            if n + 1 < len(HOPS):
                await bus.publish(f"ring.{HOPS[n + 1]}", msg.data)
            else:
                finished.put_nowait(time.perf_counter())
            await Delivery(bus, msg).ack()
