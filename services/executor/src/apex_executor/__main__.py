"""Run the executor: `python -m apex_executor`."""

import sys

from apex_bus.run import run
from apex_executor.service import compose
from apex_schemas.subjects import Identity

if __name__ == "__main__":
    sys.exit(run(Identity.EXECUTOR, compose))
