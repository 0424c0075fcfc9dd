"""`python -m apex_cli`, which the launcher runs."""

import sys

from apex_cli.app import main

sys.exit(main())
