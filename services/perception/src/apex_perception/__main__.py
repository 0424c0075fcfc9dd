"""The perception service: `python -m apex_perception`."""

import sys

from apex_bus.run import run
from apex_perception.compose import compose
from apex_schemas.subjects import Identity

if __name__ == "__main__":
    sys.exit(run(Identity.PERCEPTION, compose))
