"""`python -m apex_lab.chaos`: the command without the launcher."""

import sys

from apex_cli.errors import CommandError
from apex_lab.chaos.command import chaos

if __name__ == "__main__":
    try:
        chaos.main(standalone_mode=False)
    except CommandError as error:
        sys.stderr.write(f"apex: {error}\n")
        sys.exit(error.exit_code)
