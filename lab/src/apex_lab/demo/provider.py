"""Who decides in demo and `up`: the scripted model, unless a real one is asked for by name."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click
from rich.console import Console

from apex_lab.demo import running
from apex_lab.stack import real_model
from apex_lab.stack.services import KEY_VARIABLES, Model, Provider

Command = TypeVar("Command", bound=Callable[..., Any])

IGNORED: Final = ("ANTHROPIC_", "OPENAI_", "AI_PLANNER_")
_HELP: Final = "Let the real model decide, with its key from {} and the AI_PLANNER_* settings; this costs money."


def provider_options(command: Command) -> Command:
    """--provider and --model."""
    keys = " or ".join(KEY_VARIABLES.values())
    command = click.option("--model", help="Of the provider. Default: AI_PLANNER_MODEL.")(command)
    return click.option("--provider", type=click.Choice(list(KEY_VARIABLES)), help=_HELP.format(keys))(command)


def chosen_model(
    provider: Provider | None, model: str | None, environ: Mapping[str, str], console: Console
) -> Model | None:
    """The provider's model that was asked for; otherwise None, after saying which variables are ignored for that.

    Raises CommandError when the provider's key or model is missing.
    """
    if provider is not None:
        chosen = running.sentence(lambda: real_model(provider, model, environ))
        console.print(f"The model: {chosen.model} of {provider}. Its calls cost money.", markup=False)
        return chosen
    if model is not None:
        raise click.UsageError("--model is of a provider: give --provider as well")
    console.print("The model is scripted: a stand-in that plays prepared answers. No call leaves this machine.")
    if ignored := sorted(name for name in environ if name.startswith(IGNORED)):
        console.print(f"Ignored, so that a key spends nothing unasked: {', '.join(ignored)} (--provider uses them).")
    return None
