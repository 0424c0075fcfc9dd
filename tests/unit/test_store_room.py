"""How much room the streams have: one number for the server's limit and for provisioning, told where it is missing."""

import json
import re
from pathlib import Path

import pytest

from apex_bus.credentials import Server, write_credentials
from apex_bus.errors import StoreFull
from apex_bus.provision import ProvisionSettings, stream_config
from apex_schemas.streams import STREAMS


def max_file(config: Path) -> int:
    found = re.search(r"^jetstream: (\{.*?\n\})", config.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return json.loads(found[1])["max_file"]


@pytest.mark.parametrize("store_mib", [ProvisionSettings().store_mib, 64, 20_000])
def test_server_may_keep_what_the_streams_may_have_whatever_that_is_set_to(tmp_path: Path, store_mib: int) -> None:
    server = Server(store_mib=store_mib)
    room = max_file(write_credentials(tmp_path, (), server).config_path)
    wanted = sum(stream_config(each, replicas=1, store_mib=store_mib)["max_bytes"] for each in STREAMS)
    assert wanted < room <= wanted + 2 * 2**30


def test_by_default_the_streams_have_what_their_table_says() -> None:
    for stream in STREAMS:
        config = stream_config(stream, replicas=1, store_mib=ProvisionSettings().store_mib)
        assert config["max_bytes"] == stream.max_bytes, stream.name


def test_full_stream_and_full_server_are_told_apart_with_what_to_do() -> None:
    stream, whole = StoreFull("TASKS", "maximum bytes"), StoreFull("TASKS", "insufficient resources", whole=True)
    assert "stream TASKS is full" in str(stream)
    assert "APEX_STORE_MIB" in str(stream)
    assert "no room left for stream TASKS" in str(whole)
    assert "max_file" in str(whole)
