"""`./apex chaos` for two minutes: everything is killed, paused, restarted and cut off, and the account holds."""

from pathlib import Path

import components
import pytest

from apex_lab.chaos.run import Plan, run


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("stack-chaos")
async def test_account_holds_when_everything_is_killed_paused_and_cut_off_for_two_minutes(tmp_path: Path) -> None:
    components.nats()
    components.postgres()
    told: list[str] = []
    report = await run(Plan(minutes=2, seed=20_261_130, phones=3), tmp_path / "stack", told.append)
    assert not report.wrong, (report, told[-20:])
    trouble = report.counts["trouble"]
    assert min(trouble.get(kind, 0) for kind in ("kill", "pause", "nats", "postgres", "cut")) > 0, trouble
    assert report.counts["tasks_begun"] >= 10
