"""Run the decision-log: `python -m apex_decision_log`."""

import sys

from apex_bus.run import run
from apex_decision_log.service import compose
from apex_schemas.subjects import Identity

if __name__ == "__main__":
    sys.exit(run(Identity.DECISION_LOG, compose))
