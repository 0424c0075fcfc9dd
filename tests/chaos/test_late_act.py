"""An act that is under way at the phone while its executor is cut off: its outcome is written behind whatever comes of
it, and never before.
"""

from pathlib import Path
from urllib.parse import urlsplit

import components
from integration.executor_rig import DEVICE, Rig, executor_rig, until

from apex_lab.chaos.links import Link
from apex_lab.embedded.nats import nats_server
from apex_schemas.actions import Tap
from apex_schemas.geometry import Point

UNDER_WAY_MS = 2_500


async def _in_hand(rig: Rig) -> bool:
    """Whether the phone's server has a command that is not answered."""
    listed = await rig.phones._get("/lab/phones")
    return any(session["commands"] for phone in listed if phone["udid"] == DEVICE for session in phone["sessions"])


async def test_outcome_of_an_act_that_is_under_way_when_the_phone_is_cut_off_is_written_when_it_can_no_more_happen(
    tmp_path: Path,
) -> None:
    components.nats()
    async with nats_server(tmp_path / "nats") as server, executor_rig(server.url, tmp_path) as rig:
        port = urlsplit(rig.phones_url).port
        assert port is not None
        async with Link(lambda: port) as link:
            rig.phones_url = f"http://127.0.0.1:{link.port}"
            await rig.start()
            task = await rig.ask()
            await rig.started(task)
            await rig.phones.set_faults(DEVICE, {"latency_ms": {"actions": UNDER_WAY_MS}})
            await rig.plan(task, 0, Tap(at=Point(x=50, y=60)))
            await rig.newest(task, "acting", 0)
            await until(lambda: _in_hand(rig), what="the act is under way")
            link.refuse()
            [act] = await until(rig.acts, what="the phone did it all the same")
            link.heal()
            event = await rig.newest(task, "event", 0)
        assert event.body.success is None
        assert event.timestamp_ns // 1_000_000 >= act["at_ms"], "the outcome was declared while the act was to come"
