"""`./apex chaos` for two minutes: everything is killed, paused, restarted and cut off, and the account holds."""

import logging
from pathlib import Path

import components
import pytest

from apex_lab.chaos.run import Plan, run

log = logging.getLogger(__name__)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.xdist_group("stack-chaos")
async def test_account_holds_when_everything_is_killed_paused_and_cut_off_for_two_minutes(tmp_path: Path) -> None:
    components.nats()
    components.postgres()
    told: list[str] = []
    report = await run(Plan(minutes=2, seed=20_261_130, phones=3), tmp_path / "stack", told.append)
    log.info("%s; recovery %s", report.counts, report.recovery_s)
    assert not {name: count for name, count in report.zeros.items() if count}, (report, told[-20:])
    assert report.counts["kills_between_acting_and_event"] > 0, report
    trouble = report.counts["trouble"]
    assert min(trouble.get(kind, 0) for kind in ("kill", "pause", "nats", "postgres", "cut")) > 0, trouble
    # How many are done in the time, and how many of them undisturbed, is the machine's affair.
    assert report.counts["tasks_begun"] > 1
    assert report.counts["tasks_as_undisturbed"] > 0
