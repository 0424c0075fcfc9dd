"""Set-up of streams and consumers on a real server: it repeats, and it changes nothing that is there."""

import json

import pytest
from integration.bus_rig import connected, slot
from integration.conftest import Nats

from apex_bus.errors import Drift, SettingsError
from apex_bus.provision import consumer_config, device_aliases, provision, stream_config
from apex_schemas.consumers import consumers
from apex_schemas.streams import STREAMS

DEVICES = ("pixel", "galaxy")


async def test_provisioning_twice_makes_everything_once_and_keeps_what_is_stored(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus:
        await provision(bus, DEVICES)
        await bus.publish(slot("planned", 0).subject, b"kept")
        await provision(bus, DEVICES)
        assert (await bus.api("STREAM.INFO.TASKS"))["state"]["messages"] == 1
        for stream in STREAMS:
            listed = (await bus.api(f"CONSUMER.NAMES.{stream.name}"))["consumers"] or []
            assert sorted(listed) == sorted(each.name for each in consumers(DEVICES) if each.stream == stream.name)


async def test_device_that_is_added_gets_its_consumers_and_the_others_stay(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus:
        await provision(bus, ("pixel",))
        before = await bus.api("CONSUMER.INFO.TASKS.DEVICE_pixel")
        await provision(bus, DEVICES)
        assert (await bus.api("CONSUMER.INFO.TASKS.DEVICE_galaxy"))["config"]["filter_subjects"]
        assert (await bus.api("CONSUMER.INFO.TASKS.DEVICE_pixel"))["created"] == before["created"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"max_age": 1_000_000_000_000}, "max_age"),
        ({"deny_purge": False}, "deny_purge"),
        ({"max_msgs_per_subject": -1, "discard_new_per_subject": False}, "max_msgs_per_subject"),
        ({"max_bytes": 4 * 2**30 + 1}, "max_bytes"),
    ],
)
async def test_stream_of_another_configuration_is_drift_that_names_the_difference(
    nats_server: Nats, change: dict[str, object], named: str
) -> None:
    async with connected(nats_server.url) as bus:
        other = {**stream_config(STREAMS[0], replicas=1, store_mib=7_616), **change}
        assert "error" not in await bus.api("STREAM.CREATE.TASKS", json.dumps(other).encode())
        with pytest.raises(Drift) as drift:
            await provision(bus, DEVICES)
        assert set(drift.value.differences) == set(change)
        assert named in str(drift.value)
        assert "stream TASKS" in str(drift.value)
        assert (await bus.api("STREAM.INFO.TASKS"))["config"][named] == change[named], "it is left as it was"


async def test_stream_that_is_wanted_larger_is_made_larger_with_what_is_in_it_and_never_smaller(
    nats_server: Nats,
) -> None:
    async with connected(nats_server.url) as bus:
        await provision(bus, (), store_mib=64)
        await bus.publish("request.any", b"waits")
        await provision(bus, (), store_mib=128)
        for stream in STREAMS:
            info = await bus.api(f"STREAM.INFO.{stream.name}")
            wanted = stream_config(stream, replicas=1, store_mib=128)
            assert info["config"]["max_bytes"] == wanted["max_bytes"], stream.name
        kept = await bus.get("REQUESTS", "request.any")
        assert kept is not None
        assert kept.data == b"waits"
        with pytest.raises(Drift, match="max_bytes"):
            await provision(bus, (), store_mib=64)


async def test_consumer_of_another_configuration_is_drift_that_names_the_difference(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus:
        await provision(bus, ())
        device = next(each for each in consumers(("pixel",)) if each.name == "DEVICE_pixel")
        config = {**consumer_config(device), "ack_wait": 3_000_000_000}
        body = {"stream_name": "TASKS", "config": config, "action": "create"}
        assert "error" not in await bus.api("CONSUMER.CREATE.TASKS.DEVICE_pixel", json.dumps(body).encode())
        with pytest.raises(Drift, match=r"DEVICE_pixel.*ack_wait is 3000000000, wanted 10000000000"):
            await provision(bus, ("pixel",))


async def test_limits_of_all_streams_together_stay_within_the_store(nats_server: Nats) -> None:
    async with connected(nats_server.url) as bus:
        await provision(bus, (), store_mib=64)
        limits = [(await bus.api(f"STREAM.INFO.{each.name}"))["config"]["max_bytes"] for each in STREAMS]
        assert all(limit > 0 for limit in limits)
        assert sum(limits) <= 64 * 2**20


@pytest.mark.parametrize("alias", ["any", "none", "ios", "192.168.0.9:5555", "Pixel", "a b", "*", ">", "x" * 33])
def test_alias_that_cannot_be_a_token_is_refused_by_name(alias: str) -> None:
    with pytest.raises(SettingsError, match="APEX_DEVICES"):
        device_aliases(f"pixel, {alias}")


def test_aliases_are_read_from_a_list_with_blanks() -> None:
    assert device_aliases(" pixel , ,galaxy-2,") == ("pixel", "galaxy-2")
