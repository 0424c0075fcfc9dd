"""The planner service: `python -m apex_planner`. The endpoint is `python -m apex_planner.endpoint`."""

import sys

from apex_bus.run import run
from apex_planner.compose import compose
from apex_schemas.subjects import Identity

if __name__ == "__main__":
    sys.exit(run(Identity.PLANNER, compose))
