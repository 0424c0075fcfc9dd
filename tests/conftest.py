"""What holds for every test: no provider, telemetry or apex setting of the shell reaches it, and none is decided by
speed. What could not run because something is missing on this machine is named at the end.
"""

import os

import components
import pytest
from hypothesis import settings

SCRUBBED = ("ANTHROPIC_", "OPENAI_", "OTEL_", "AI_PLANNER_", "APEX_", "EXECUTOR_", "PERCEPTION_", "DECISION_LOG_")
KEPT = "APEX_TEST_"

# At import, so that nothing that a test module reads while it is collected sees them either.
for _name in [name for name in os.environ if name.startswith(SCRUBBED) and not name.startswith(KEPT)]:
    del os.environ[_name]

# Property tests are not decided by speed either; a hang is ended by pytest-timeout. The rest is as Hypothesis has it,
# which knows CI by itself.
settings.register_profile("unhurried", settings(), deadline=None)
settings.load_profile("unhurried")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name each missing component, how many tests were left out for it, and how to get it."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()) if _has_reason(report)]
    left_out = {
        component: sum(f"{component} is not here" in reason for reason in reasons) for component in components.FINDERS
    }
    for component, count in left_out.items():
        if count:
            terminalreporter.write_line(
                f"left out {count} {'test' if count == 1 else 'tests'} for want of {component}: "
                f"{components.HOW_TO_INSTALL[component]}",
                yellow=True,
            )


def _has_reason(report: pytest.TestReport) -> bool:
    return isinstance(report.longrepr, tuple)
