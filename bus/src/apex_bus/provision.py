"""Make the streams and consumers of the subjects table: `python -m apex_bus.provision`, as the provisioner, at start.

Idempotent: what exists as wanted is left alone; a stream that is wanted larger is made larger, which loses nothing and
lets go on what a full one has kept waiting; what exists otherwise is an error that names the differences, since a
silent update of a stream could drop what is in it.
"""

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from apex_bus.connection import Bus, connect
from apex_bus.errors import BusError, Drift, SettingsError
from apex_bus.run import set_up_logging
from apex_bus.settings import bus_settings, load
from apex_schemas.consumers import Consumer, consumers
from apex_schemas.ids import is_device
from apex_schemas.streams import STREAMS, Stream
from apex_schemas.subjects import Identity

log = logging.getLogger(__name__)

DEVICES, EXECUTORS = "APEX_DEVICES", "EXECUTOR_DEVICES"


class ProvisionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`devices` are the aliases, by commas, or the executor's own list; without it, what EXECUTOR_DEVICES says.
    `store_mib` bounds all streams together."""

    devices: str = ""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    store_mib: Annotated[int, msgspec.Meta(ge=64)] = 7_616


class _Named(msgspec.Struct):
    alias: str
    pools: tuple[str, ...] = ()


def named_devices(environ: Mapping[str, str]) -> tuple[str, str]:
    """The list of devices, and the variable that it stands in: the executor's own where APEX_DEVICES is not set."""
    own = environ.get(EXECUTORS, "").strip()
    return (own, EXECUTORS) if own and not environ.get(DEVICES, "").strip() else (environ.get(DEVICES, ""), DEVICES)


def device_aliases(text: str, variable: str = DEVICES) -> tuple[str, ...]:
    """The aliases of a comma-separated list, or of a JSON list of devices as in EXECUTOR_DEVICES, and the labels of
    their pools: a label gets consumers as an alias does.

    Raises SettingsError, which names the variable, for an alias that cannot be a token of a subject. The text is not
    echoed: it may hold keys.
    """
    if text.lstrip().startswith("["):
        try:
            devices = msgspec.json.decode(text, type=list[_Named])
            named = (*(device.alias for device in devices), *(pool for device in devices for pool in device.pools))
            aliases = tuple(dict.fromkeys(named))
        except msgspec.MsgspecError as error:
            raise SettingsError(variable, f"is no list of devices: {error}") from None
    else:
        aliases = tuple(part.strip() for part in text.split(",") if part.strip())
    for alias in aliases:
        if not is_device(alias):
            raise SettingsError(variable, f"{alias!r} is no device alias: use a-z, 0-9 and -, at most 32")
    return aliases


def stream_config(stream: Stream, *, replicas: int, store_mib: int) -> dict[str, Any]:
    """The stream as JetStream's API takes it. Ages are in nanoseconds there."""
    total = sum(each.max_bytes for each in STREAMS)
    return {
        "name": stream.name,
        "subjects": list(stream.subjects),
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "max_age": stream.max_age_s * 1_000_000_000,
        "max_bytes": stream.max_bytes * store_mib * 2**20 // total,
        "max_msgs_per_subject": 1 if stream.once or stream.last_only else -1,
        "discard": "new" if stream.full == "refuse" else "old",
        "discard_new_per_subject": stream.once,
        "deny_delete": stream.once,
        "deny_purge": stream.once,
        "allow_direct": True,
        "allow_msg_ttl": stream.message_ttl,
        "duplicate_window": 120 * 1_000_000_000,
    }


def consumer_config(consumer: Consumer) -> dict[str, Any]:
    config: dict[str, Any] = {
        "name": consumer.name,
        "durable_name": consumer.name,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "replay_policy": "instant",
        "ack_wait": int(consumer.ack_wait_s * 1e9),
        "max_deliver": consumer.max_deliver,
        "max_ack_pending": consumer.max_ack_pending,
        "max_waiting": 512,
    }
    if len(consumer.filters) == 1:
        config["filter_subject"] = consumer.filters[0]
    else:
        config["filter_subjects"] = list(consumer.filters)
    return config


async def provision(bus: Bus, devices: tuple[str, ...], *, replicas: int = 1, store_mib: int = 7_616) -> None:
    """Make what is missing, and streams larger. Raises Drift for what exists with another configuration."""
    for stream in STREAMS:
        wanted = stream_config(stream, replicas=replicas, store_mib=store_mib)
        await _enlarge(bus, stream.name, wanted["max_bytes"])
        await _ensure(
            bus, f"stream {stream.name}", f"STREAM.INFO.{stream.name}", f"STREAM.CREATE.{stream.name}", wanted, wanted
        )
    for consumer in consumers(devices):
        wanted = consumer_config(consumer)
        place = f"{consumer.stream}.{consumer.name}"
        body = {"stream_name": consumer.stream, "config": wanted, "action": "create"}
        await _ensure(
            bus, f"consumer {consumer.name}", f"CONSUMER.INFO.{place}", f"CONSUMER.CREATE.{place}", wanted, body
        )


async def _enlarge(bus: Bus, name: str, max_bytes: int) -> None:
    """Raise the limit of a stream that exists with a lower one. Raises Drift where the server has no room for it."""
    found = await bus.api(f"STREAM.INFO.{name}")
    if "error" in found or not 0 < found["config"]["max_bytes"] < max_bytes:
        return
    config = {**found["config"], "max_bytes": max_bytes}
    made = await bus.api(f"STREAM.UPDATE.{name}", json.dumps(config).encode(), timeout_s=15)
    if "error" in made:
        raise Drift(f"stream {name}", {"max_bytes": (made["error"].get("description"), max_bytes)})
    log.info("stream %s may now have %d MiB", name, max_bytes // 2**20)


async def _ensure(bus: Bus, what: str, info: str, create: str, wanted: dict[str, Any], body: dict[str, Any]) -> None:
    found = await bus.api(info)
    if "error" in found:
        made = await bus.api(create, json.dumps(body).encode(), timeout_s=15)
        if "error" in made:
            raise Drift(what, {"creation": (made["error"].get("description"), "accepted")})
        log.info("%s made", what)
        return
    config = found["config"]
    differences = {key: (config.get(key), value) for key, value in wanted.items() if _differs(config.get(key), value)}
    if differences:
        raise Drift(what, differences)


def _differs(found: Any, wanted: Any) -> bool:
    """Whether a value differs; the server leaves false, zero and empty values out."""
    return found != wanted and not (found is None and wanted in (False, 0, "", []))


def wanted_devices(environ: Mapping[str, str], *, or_keep: bool) -> tuple[str, ...]:
    """The aliases to make consumers for. With `or_keep`, none for a list that cannot be read: those of the devices
    before are left as they are."""
    text, variable = named_devices(environ)
    try:
        return device_aliases(text, variable)
    except SettingsError as error:
        if not or_keep:
            raise
        log.error("nothing is changed about devices: %s", error)
        return ()


async def _main(environ: Mapping[str, str], *, or_keep: bool) -> None:
    settings = load(ProvisionSettings, environ, prefix="APEX_")
    devices = wanted_devices(environ, or_keep=or_keep)
    bus = await connect(Identity.PROVISIONER, bus_settings(environ))
    try:
        await provision(bus, devices, replicas=settings.replicas, store_mib=settings.store_mib)
    finally:
        await bus.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="apex_bus.provision", description="Make streams and consumers")
    parser.add_argument("--or-keep", action="store_true", help="go on without a list of devices that cannot be read")
    or_keep = parser.parse_args().or_keep
    try:
        set_up_logging("provision", os.environ)
        asyncio.run(_main(os.environ, or_keep=or_keep))
    except BusError as error:
        log.critical("provisioning stops: %s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
