"""The `apex` command: submit a task, follow it, read it back, look into a saved screen, and check the code.

Talks to NATS as a client and to nothing else. `demo` and `up` come from the lab by the entry point group
`apex.commands`, so this package does not import it.
"""

from importlib.metadata import version

__version__ = version("apex-cli")
