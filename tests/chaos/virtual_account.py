"""What must hold at the end of a run of the whole system, found in the log, on the phone and at the provider.

Beside what holds of every run (`wrong`): one Scene a turn, whose picture is there and shows the same screen; no
decision without its picture and its record; nothing given up; and the task succeeded.
"""

import hashlib

from chaos.test_virtual_time import wrong
from chaos.virtual_screen import WORDS, shows
from chaos.virtual_whole import WholeWorld

from apex_bus.connection import Stored
from apex_bus.tasklog import Entry, entry_of
from apex_schemas import envelope, subjects
from apex_schemas.decision import DecisionRecord
from apex_schemas.scene import Scene


def entries(world: WholeWorld, kind: str) -> list[Entry]:
    return [entry_of(each) for each in world.log.stored if each.subject.endswith(f".{kind}")]


def paid_again(world: WholeWorld) -> int:
    return sum(len(lives) - 1 for lives in world.paid.values())


def account(world: WholeWorld) -> list[str]:
    """What is wrong, a sentence for each."""
    by_subject = {each.subject: each for each in world.log.stored}
    # Who may pay again is told more closely by the walk, which knows the gap.
    found = [each for each in wrong(world) if " was paid " not in each]
    found += [*_scenes(world, by_subject), *_decisions(world, by_subject)]
    found += [
        f"{each.subject}: a message was given up" for each in world.log.stored if each.subject.startswith("dead.")
    ]
    ends = [(end.body.status, end.body.reason) for end in entries(world, "finished")]
    if [status for status, _ in ends] != ["succeeded"]:
        found.append(f"the task did not succeed: {ends}")
    return found


def _scenes(world: WholeWorld, by_subject: dict[str, Stored]) -> list[str]:
    found: list[str] = []
    scenes = entries(world, "scene")
    turns = [entry.slot.turn for entry in scenes]
    if sorted(turns) != list(range(len(turns))):  # type: ignore[type-var]
        found.append(f"scenes of turns {turns}")
    for entry in scenes:
        scene = entry.body
        assert isinstance(scene, Scene)
        if scene.screenshot is None:
            found.append(f"scene {entry.slot.turn} names no picture")
            continue
        stored = by_subject.get(scene.screenshot.subject)
        if stored is None or hashlib.sha256(stored.data).hexdigest() != scene.screenshot.sha256:
            found.append(f"scene {entry.slot.turn} names a picture that is not there")
        elif stored.sequence > entry.sequence:
            found.append(f"scene {entry.slot.turn} was there before its picture")
        taps = shows(scene.screenshot.sha256)
        if taps is None or not any(each.label == f"{WORDS[taps]} tapped" for each in scene.elements):
            found.append(f"scene {entry.slot.turn} and its picture show two screens")
    return found


def _decisions(world: WholeWorld, by_subject: dict[str, Stored]) -> list[str]:
    found: list[str] = []
    scenes = {entry.slot.turn: entry.body for entry in entries(world, "scene")}
    for planned in entries(world, "planned"):
        key = planned.body.decision
        if key is None:
            continue
        stored = by_subject.get(subjects.decision(key.task, key.turn, key.call))
        if stored is None:
            found.append(f"turn {key.turn}: decided without a record")
            continue
        if stored.sequence > planned.sequence:
            found.append(f"turn {key.turn}: planned before its record")
        record = envelope.decode(stored.data).body
        assert isinstance(record, DecisionRecord)
        shot = scenes[key.turn].screenshot
        if shot is None or record.screenshot_sha256 != shot.sha256:
            found.append(f"turn {key.turn}: decided without its picture")
    return found
