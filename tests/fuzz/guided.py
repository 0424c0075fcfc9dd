"""libFuzzer's loop over one function of bytes, in a process of its own: it ends the process itself.

Run as `guided.py MODULE FUNCTION LIBFUZZER_ARGUMENTS...`; ends with 0, or with libFuzzer's code when an input broke the
function.
"""

import importlib
import shlex
import sys
from pathlib import Path
from typing import Final

import atheris  # pyright: ignore[reportMissingImports]

WATCHED: Final = ["apex_schemas", "apex_perception", "apex_planner"]

program, module, function, *arguments = sys.argv
sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=[*WATCHED, module]):
    target = getattr(importlib.import_module(module), function)

# By its first argument libFuzzer calls itself when it reduces inputs.
atheris.Setup([shlex.join([sys.executable, program, module, function]), *arguments], target)
atheris.Fuzz()
