"""The command line itself: which commands there are, and how an error becomes a sentence and an exit code.

Commands are imported when they are used. Those of other distributions come by the entry point group `apex.commands`
(name → click command): so the lab adds `demo` and `up`, and this package does not know it.
"""

import logging
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

import click

from apex_bus.errors import BusError
from apex_cli import __version__
from apex_cli.errors import EXIT_CODES, CommandError
from apex_cli.place import HOW_TO_FIND

OWN: Final = {
    "submit": "apex_cli.commands.tasks:submit",
    "show": "apex_cli.commands.tasks:show",
    "report": "apex_cli.commands.report:report",
    "tasks": "apex_cli.commands.tasks:tasks",
    "cancel": "apex_cli.commands.tasks:cancel",
    "approve": "apex_cli.commands.approve:approve",
    "deny": "apex_cli.commands.approve:deny",
    "devices": "apex_cli.commands.devices:devices",
    "queue": "apex_cli.commands.devices:queue",
    "dead": "apex_cli.commands.dead:dead",
    "doctor": "apex_cli.commands.doctor:doctor",
    "replay": "apex_cli.commands.replay:replay",
    "perceive": "apex_cli.commands.offline:perceive",
    "plan": "apex_cli.commands.offline:plan",
    "test": "apex_cli.commands.checks:test",
}
GROUP: Final = "apex.commands"
INTERRUPTED: Final = 130


class LazyGroup(click.Group):
    """Knows its commands by name and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*sorted(entry.name for entry in entry_points(group=GROUP)), *OWN]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OWN:
            module, _, name = OWN[cmd_name].partition(":")
            return getattr(import_module(module), name)
        return next((entry.load() for entry in entry_points(group=GROUP, name=cmd_name)), None)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but a misspelt command is answered with the one that it is like."""
        if args and not args[0].startswith("-") and args[0] not in (known := self.list_commands(ctx)):
            like = get_close_matches(args[0], known, n=1)
            ctx.fail(f"there is no command {args[0]!r}" + (f"; did you mean `apex {like[0]}`?" if like else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, epilog=f"{HOW_TO_FIND}\n\n{EXIT_CODES}", context_settings={"max_content_width": 110})
@click.version_option(__version__, prog_name="apex")
def apex() -> None:
    """Apex Agent: drives phones with a language model, every act and every reason on record.

    Begin with `apex demo`, which needs no phone and no key; or keep its stack running with `apex up`.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    logging.getLogger("apex_bus.connection").addFilter(_told_anyway)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        result = apex.main(args=arguments, prog_name="apex", standalone_mode=False)
    except click.exceptions.Abort:
        return _say("interrupted", INTERRUPTED)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CommandError as error:
        return _say(str(error), error.exit_code)
    except BusError as error:
        return _say(str(error), 3)
    except UnicodeEncodeError:
        if all(_is_text(word) for word in given):
            raise
        return _say("the command line holds bytes that are no text in UTF-8", 2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; nothing more can be said to it
        return 1
    return result if isinstance(result, int) else 0


def _is_text(word: str) -> bool:
    """False for what the shell handed over as other bytes than UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _told_anyway(record: logging.LogRecord) -> bool:
    """False for what the command's own last sentence says, in other words."""
    return not record.getMessage().startswith("permission refused")


def _say(text: str, code: int) -> int:
    click.echo(f"apex: {text}", err=True)
    return code
