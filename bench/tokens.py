"""What the prompts of a task cost in tokens, counted with gpt-tokenizer (o200k_base), as the peers were counted.

    (cd bench && npm ci) && python bench/tokens.py [--source FILE] [--turns 30] [--json FILE]

The task: 30 taps on one Settings screen, each with a rationale of 36 tokens. By turn: the whole prompt, what it grew
by, and how much of it is a prefix of the turn before. Without `--source` the Settings of the simulated phone.
"""

import argparse
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from apex_lab.phone import Phone
from apex_perception.perceive import perceive_file
from apex_planner.decide import first_request
from apex_planner.grounding import target_of
from apex_planner.prompt import SYSTEM_PROMPT, stable_blocks
from apex_planner.tools import offered
from apex_schemas.actions import Tap
from apex_schemas.decision import DecisionRequest, ToolSpec
from apex_schemas.scene import Scene
from apex_schemas.steps import WorldEvent, WorldState
from apex_schemas.task import TaskRequest, TaskStarted

HERE: Final = Path(__file__).parent
RATIONALE: Final = (
    "The settings list is shown and the last tap brought what was expected of it, though the entry that is wanted is "
    "not among them. Next I open the following entry of it."
)
LIMITS: Final = {"fixed": 900, "growth": 60, "total": 70_000, "shared": 0.8}
PEERS: Final = {"mobilerun": 244_695, "M3A": 263_626, "mobile-use": 554_322}


class Counted(NamedTuple):
    fixed: int
    rationale: int
    turns: list[int]
    kept: list[int]
    """What each turn adds for good: its line of history. The last step, which is replaced, is not in it."""
    shared: list[float]
    """The share of each turn's prompt, from the second on, that begins the turn before it too."""


def worlds_of(scene: Scene, turns: int) -> list[WorldState]:
    """The World before each turn."""
    places = [each for each in scene.elements if each.tap_point is not None and each.interactive]
    events = [
        WorldEvent(
            action=Tap(at=place.tap_point),
            success=True,
            page=scene.page,
            target=target_of(place),
            purpose="to find the entry that the goal asks for",
            expected_outcome="the page of the entry is shown",
            rationale=RATIONALE,
            fingerprint=scene.fingerprint,
        )
        for place in (places[turn % len(places)] for turn in range(turns))
        if place.tap_point is not None
    ]
    request = TaskRequest(goal="turn on Wi-Fi and report the network name", max_turns=turns + 10)
    started = TaskStarted(request=request, pool="any", request_sequence=1, request_digest="", started_at_ms=1)
    return [WorldState(started=started, history=tuple(events[:turn])) for turn in range(turns)]


def prompt(scene: Scene, world: WorldState) -> str:
    """All that is sent: tools, system prompt, user message."""
    request = first_request(scene, world, None, task="0" * 32, loop_limit=0)
    assert isinstance(request, DecisionRequest)
    return "\n".join((written(request.tools), request.system_prompt, *request.user_blocks))


def written(tools: tuple[ToolSpec, ...]) -> str:
    """The tools as they are sent."""
    sent: list[dict[str, Any]] = [
        {"name": each.name, "description": each.description, "input_schema": each.parameters} for each in tools
    ]
    return json.dumps(sent, separators=(",", ":"))


def token_ids(given: list[str]) -> list[list[int]]:
    done = subprocess.run(
        ["node", str(HERE / "tokens.mjs")], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"gpt-tokenizer could not be run; `(cd bench && npm ci)` installs it\n{done.stderr[-500:]}")
    return json.loads(done.stdout)


def count(scene: Scene, turns: int) -> Counted:
    worlds = worlds_of(scene, turns)
    prompts = token_ids([prompt(scene, world) for world in worlds])
    histories = token_ids(["\n".join(stable_blocks(world)) for world in worlds])
    fixed, rationale = token_ids([written(offered("core")) + "\n" + SYSTEM_PROMPT, RATIONALE])
    lengths = [len(each) for each in prompts]
    return Counted(
        fixed=len(fixed),
        rationale=len(rationale),
        turns=lengths,
        kept=[then - now for now, then in pairwise(map(len, histories))],
        shared=[shared(now, then) / len(then) for now, then in pairwise(prompts)],
    )


def shared(now: list[int], then: list[int]) -> int:
    return next((n for n, (a, b) in enumerate(zip(now, then, strict=False)) if a != b), min(len(now), len(then)))


def settings_of_the_simulator() -> bytes:
    phone = Phone("sim-1")
    phone.launch("com.android.settings")
    return phone.source().encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="a page source; default: the simulated phone's Settings")
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    given = parser.parse_args()
    scene = perceive_file(given.source.read_bytes() if given.source else settings_of_the_simulator())
    found = count(scene, given.turns)
    print(f"screen: {given.source or 'Settings of the simulated phone'}, {len(scene.elements)} elements")
    print(f"rationale: {found.rationale} tokens")
    print("turn  tokens  growth  shared with the turn before")
    for turn, tokens in enumerate(found.turns):
        grew = tokens - found.turns[turn - 1] if turn else 0
        part = f"{found.shared[turn - 1]:.0%}" if turn else "-"
        print(f"{turn + 1:>4}  {tokens:>6}  {grew:>6}  {part}")
    total = sum(found.turns)
    lines = (
        ("fixed part (tools, system prompt)", found.fixed, LIMITS["fixed"]),
        ("largest growth by a turn (its line of history)", max(found.kept), LIMITS["growth"]),
        ("mean growth of the prompt by a turn", round((found.turns[-1] - found.turns[1]) / (given.turns - 2)), 60),
        (f"all {given.turns} prompts", total, LIMITS["total"]),
    )
    for name, value, limit in lines:
        print(f"{name}: {value:,} (at most {limit:,}: {'met' if value <= limit else 'MISSED'})")
    last = found.shared[-1]
    print(f"shared at the last turn: {last:.1%} (at least 80 %: {'met' if last >= LIMITS['shared'] else 'MISSED'})")
    print("peers, the same task: " + ", ".join(f"{name} {tokens:,}" for name, tokens in PEERS.items()))
    if given.json:
        given.json.write_text(json.dumps({**found._asdict(), "total": total}, indent=1) + "\n")


if __name__ == "__main__":
    main()
