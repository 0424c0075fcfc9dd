"""Goals that spell out what to do: `open Settings, then tap "Display"`, `type "Zoë" into "Name" then tap "Save"`.

Verbs: tap, open, launch, type ... into, scroll, close, check. Each act names its step in the intent (`step 2 of 3:
...`), so the history says how far the task is; without rationales in the history the tools used are counted instead.
"""

import re
from typing import assert_never

from apex_lab.model.moves import Launch, Move, Terminate, Type, finish
from apex_lab.model.playbook import Playbook
from apex_lab.model.playbooks.interruption import INTERRUPTIONS
from apex_lab.model.playbooks.step import Step, parse_steps
from apex_lab.model.screen import Element
from apex_lab.model.situation import Situation, scroll_for, swipe, tap

_MARK = re.compile(r"step (\d+) of \d+: ")
_TOOLS = {
    "tap": {"tap"},
    "open": {"tap", "launch_app"},
    "launch": {"launch_app"},
    "type": {"input_text"},
    "scroll": {"swipe", "scroll"},
    "close": {"terminate_app"},
    "check": set[str](),
}
_BACK = 3
_APPS = frozenset(
    [
        "settings",
        "contacts",
        "chrome",
        "browser",
        "clock",
        "calculator",
        "camera",
        "calendar",
        "files",
        "gallery",
        "maps",
        "messages",
    ]
)


def _shows(at: Situation, step: Step) -> Element | None:
    match step.verb:
        case "type":
            return at.find(step.where, among=at.fields()) if step.where else next(iter(at.fields()), None)
        case "check":
            return at.sees(step.what)
        case "tap" | "open" | "launch" | "close" | "scroll":
            return at.find(step.what) or at.find(step.what, among=at.fields()) if step.what else None
        case _:
            assert_never(step.verb)


def _done(at: Situation, steps: tuple[Step, ...]) -> int:
    """How many steps are behind us."""
    done, marked = 0, False
    for turn in at.history:
        match = _MARK.search(turn.rationale)
        if match is None:
            continue
        marked, number = True, int(match.group(1))
        last = turn is at.history[-1]
        following = steps[number] if number < len(steps) else None
        moved = turn.page != at.prompt.screen.page or (following is not None and _shows(at, following) is not None)
        if turn.success or (turn.success is None and (not last or moved)):
            done = max(done, number)
        else:
            done = max(done, number - 1)
    if marked or any(turn.rationale.strip(" -") for turn in at.history):
        return done  # a turn with a rationale and no mark was something else: a dialog, a way round
    for turn in at.history:
        while done < len(steps) and steps[done].verb == "check":
            done += 1
        if done < len(steps) and turn.success is not False and turn.tool in _TOOLS[steps[done].verb]:
            done += 1
    return done


def _next(at: Situation) -> Move | None:
    steps = parse_steps(at.prompt.goal)
    done = _done(at, steps)
    while done < len(steps) and _holds(at, steps[done]):
        done += 1
    if done == len(steps):
        shown = _shows(at, steps[-1])
        return finish(
            True, f"all {len(steps)} steps are done", evidence=shown.label if shown else at.prompt.screen.page or None
        )
    step, mark = steps[done], f"step {done + 1} of {len(steps)}: {steps[done].text[:100].strip()}"
    return _act(at, step, mark) or _find(at, step, mark)


def _holds(at: Situation, step: Step) -> bool:
    """Whether nothing needs to be done for this step."""
    if step.verb in ("open", "launch"):
        return at.in_app(step.what)
    return step.verb == "check" and at.sees(step.what) is not None


def _act(at: Situation, step: Step, mark: str) -> Move | None:
    target = _shows(at, step)
    match step.verb:
        case "tap" | "open" if target is not None:
            return tap(target, mark, f'What "{target.caption}" stands for is shown.')
        case "type" if target is not None or not step.where:
            return Move(act=Type(text=step.what, element=target), intent=mark, expect=f'The field shows "{step.what}".')
        case "scroll":
            return Move(act=swipe(at, step.way), intent=mark, expect="The list has moved.")
        case "launch":
            return _launch(at, step, mark)
        case "open" if step.what.casefold() in _APPS:
            return _launch(at, step, mark)
        case "close":
            return Move(act=Terminate(app=step.what), intent=mark, expect=f"{step.what} is closed.")
        case _:
            return None


def _launch(at: Situation, step: Step, mark: str) -> Move | None:
    if at.failed(mark):
        return finish(False, f'there is no app "{step.what}" that could be opened')
    return Move(act=Launch(app=step.what), intent=mark, expect=f"{step.what} is in front.")


def _find(at: Situation, step: Step, mark: str) -> Move | None:
    """The target is not in sight: clear the way, scroll, try it as an app, give up."""
    for rule in INTERRUPTIONS:
        if move := rule(at):
            return move
    name = step.where or step.what
    if at.failed(mark) == 0 and (move := scroll_for(at, name)):
        return move
    if step.verb == "open":
        return _launch(at, step, mark)
    up, back = at.find("Navigate up", least=0.9), f'go back to look for "{name[:40]}" elsewhere'
    if up is not None and at.times(back) < _BACK:
        return tap(up, back, "The page before is shown.")
    return finish(False, f'nothing named "{name}" is on "{at.prompt.screen.page}" or anywhere in its list')


STEPS = Playbook(
    name="steps",
    goal=re.compile(r".*", re.DOTALL),
    rules=(_next,),
    applies=lambda at: bool(parse_steps(at.prompt.goal)),
)
