"""The apps that a task may act in, by the request's own list. Pure.

An act is in the app that is on the screen; opening and closing an app is an act in that one. Leaving is always allowed.
"""

import fnmatch
from collections.abc import Sequence
from typing import Final, Protocol

from apex_schemas.actions import Back, Home, LaunchApp, TerminateApp, Wait
from apex_schemas.steps import PlannedStep

_FREE: Final = (Wait, Back, Home)


class Names(Protocol):
    def __call__(self, app: str, /) -> Sequence[str]:
        """The packages that a name may mean."""
        ...


def outside(step: PlannedStep, apps: Sequence[str], names: Names) -> str | None:
    """Why an act is not allowed, as a sentence for the model; None when it is. `apps` empty allows everything."""
    if not apps or isinstance(step.action, _FREE):
        return None
    listed = ", ".join(apps)
    match step.action:
        case LaunchApp(app=app) | TerminateApp(app=app):
            meant = names(app) or (app,)
            if all(_listed(package, apps) for package in meant):
                return None
            return f"{app!r} is not among the apps of this task: {listed}"
        case _:
            if step.app is not None and any(_listed(name, apps) for name in (step.app, *names(step.app))):
                return None
            shown = f"{step.app!r} is on the screen, which" if step.app else "what is on the screen"
            return f"{shown} is not among the apps of this task: {listed}; go back, or open one of them"


def _listed(name: str, apps: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name.casefold(), pattern.casefold()) for pattern in apps)
