"""Perception's handler: a task has started or something was done, and the next `scene` slot is filled.

Consumes `started` and `event`; reads `scene`, `finished` and the device's record; emits the picture to SHOTS, then
`scene`; ends a task by `finished` when its phone cannot be seen for too long. It keeps open connections, and no
state but since when a phone could not be seen.
"""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Final

from msgspec import structs

from apex_bus import metrics
from apex_bus.connection import Bus
from apex_bus.consume import Delivery, Done, Later, Verdict
from apex_bus.errors import Transient
from apex_bus.tasklog import TaskLog
from apex_bus.tracing import mark_failed, span
from apex_perception import marks, picture, redaction
from apex_perception.appium import Phone
from apex_perception.decide import OLDEST_READING_S, is_on_task, next_turn, patience_s
from apex_perception.errors import NothingToSee, PhoneError, PictureUnreadable, SessionDead
from apex_perception.healing import heal
from apex_perception.phones import Phones
from apex_perception.settings import PerceptionSettings
from apex_perception.settle import Observation, Observer
from apex_schemas import envelope, subjects
from apex_schemas.devices import DeviceRecord, SessionHandle
from apex_schemas.errors import SubjectMismatch, TooLarge, WireError
from apex_schemas.geometry import Size
from apex_schemas.ids import new_attempt
from apex_schemas.scene import Scene, ScreenshotRef
from apex_schemas.slots import Slot, parse_slot
from apex_schemas.steps import WorldEvent
from apex_schemas.task import TaskFinished, TaskStarted

log = logging.getLogger(__name__)

STAGE: Final = "perception"
_TRIES: Final = 3
_AGAIN_S: Final = 1.0
_LAG_S: Final = 5.0
_GAP_S: Final = 15.0
"""How long a record may be one that a lagging replica tells: the claim of a task is as new as its first message."""
_WATCHED: Final = 10_000

Attach = Callable[[SessionHandle, float], Phone]


class PerceptionService:
    """Handles deliveries of the consumer PERCEPTION."""

    def __init__(
        self, bus: Bus, tasks: TaskLog, settings: PerceptionSettings, attach: Attach, threads: Executor
    ) -> None:
        self._bus, self._tasks, self._settings, self._threads = bus, tasks, settings, threads
        self._unseen: OrderedDict[Slot, tuple[float, float]] = OrderedDict()  # for how long, and when last
        self._phones = Phones(lambda handle: attach(handle, settings.request_seconds), threads)

    async def handle(self, delivery: Delivery) -> Verdict:
        begun, age_s = time.monotonic(), delivery.age_s
        slot, cause = _decode(delivery)
        assert slot.turn is not None
        turn = next_turn(cause, slot.turn)
        if turn is None:
            return Done()
        wanted = Slot(device=slot.device, task=slot.task, kind="scene", turn=turn)
        filled, ended, record, before, typed = await asyncio.gather(
            self._tasks.read(wanted),
            self._tasks.read(slot.sibling("finished")),
            self._record(slot.device),
            self._before(wanted),
            self._typed_secrets(wanted),
        )
        if filled is not None or ended is not None:
            return Done()
        about = {"apex.turn": turn, "apex.device": slot.device}
        with span("observe", task=slot.task, cause=delivery.headers, attributes=about) as current:
            try:
                scene = await self._observe(wanted, cause, record, before, typed)
            except (PhoneError, NothingToSee) as error:
                mark_failed(current, type(error).__name__, str(error))
                return await self._without_scene(delivery, wanted, error, begun)
            except TooLarge as error:
                mark_failed(current, type(error).__name__, str(error))
                return await self._failed(delivery, wanted, error)
            self._unseen.pop(wanted, None)
            if scene is None:
                return Done() if age_s > _LAG_S else Later(_AGAIN_S)
            current.set_attribute("apex.page", scene.page)
            current.set_attribute("apex.page.elements", len(scene.elements))
            current.set_attribute("apex.settled", scene.settled)
            changed = scene.differs_from(before.fingerprint) if before is not None else None
            if changed is not None:
                current.set_attribute("apex.screen_changed", changed)
        return Done()

    async def _observe(
        self,
        wanted: Slot,
        cause: TaskStarted | WorldEvent,
        record: DeviceRecord | None,
        before: Scene | None,
        typed: Sequence[WorldEvent],
    ) -> Scene | None:
        """Look, publish the picture, fill the slot. None when the device is on another task by now."""
        attempt = new_attempt()
        acted_on = before.fingerprint if before is not None and patience_s(cause) > 0 else None
        last: PhoneError | None = None
        for tries in range(_TRIES):
            record = await self._record(wanted.device) if tries else record
            if record is None or not is_on_task(record, wanted.task):
                log.info("task %s is no longer on %s", wanted.task, wanted.device)
                return None
            if record.session is None:
                raise SessionDead(wanted.device, "the device has no session at present")
            try:
                seen = await self._look(wanted, record.session, acted_on, patience_s(cause))
            except SessionDead as error:
                log.warning("session of %s is dead, asking for a new one: %s", wanted.device, error)
                last = error
                await self._phones.forget(record.session)
                metrics.add(metrics.RETRIES, 1, {"what": "session"})
                await heal(self._bus, wanted.device, record.session, self._record, within_s=self._settings.heal_seconds)
                continue
            scene = await self._with_picture(wanted, attempt, self._without_secrets(seen, typed))
            if time.monotonic() - seen.read_at > OLDEST_READING_S:
                log.info("reading of %s is too old to publish, looking again", wanted.device)
                continue
            scene = marks.against(before, scene)
            await self._tasks.fill(wanted, scene, attempt=attempt)
            return scene
        raise last or SessionDead(wanted.device, "every reading was too old when it could be published")

    async def _before(self, wanted: Slot) -> Scene | None:
        """The Scene of the turn before."""
        if not wanted.turn:
            return None
        entry = await self._tasks.read(structs.replace(wanted, turn=wanted.turn - 1))
        return entry.body if entry is not None and isinstance(entry.body, Scene) else None

    async def _typed_secrets(self, wanted: Slot) -> Sequence[WorldEvent]:
        """The events of the task so far that typed a secret. Most tasks have none and are read no further."""
        if not (await self._tasks.started(wanted.device, wanted.task)).request.secrets:
            return ()
        world = await self._tasks.world(wanted.device, wanted.task, wanted.turn or 0)
        return redaction.typed_secrets(world.history)

    def _without_secrets(self, seen: Observation, typed: Sequence[WorldEvent]) -> Observation:
        """Without what was typed by name, and without the picture where that could show it."""
        if not typed and not self._settings.secrets:
            return seen
        scene = redaction.redacted(seen.scene, typed, self._settings.secrets.mask)
        return seen._replace(scene=scene, picture=None if typed or scene != seen.scene else seen.picture)

    async def _look(self, wanted: Slot, handle: SessionHandle, before: str | None, patience: float) -> Observation:
        async with self._phones.borrow(handle) as phone:
            observer = Observer(phone, handle, self._settings, self._threads)
            with span("settle", task=wanted.task, attributes={"apex.turn": wanted.turn or 0}) as current:
                seen = await observer.observe(before=before, patience_s=patience)
                current.set_attribute("apex.settled", seen.scene.settled)
                return seen

    async def _with_picture(self, wanted: Slot, attempt: str, seen: Observation) -> Scene:
        """The Scene with a reference to its picture, which is stored by then."""
        if seen.picture is None or wanted.turn is None:
            return seen.scene
        try:
            data = await asyncio.get_running_loop().run_in_executor(self._threads, picture.portable, seen.picture)
            size = picture.measure(data)
        except PictureUnreadable as error:
            log.warning("%s: %s", wanted.device, error)
            return seen.scene
        subject = subjects.shot(wanted.task, wanted.turn, attempt)
        try:
            await self._bus.publish(subject, data, headers={"Nats-Msg-Id": f"{subject}:{len(data)}:{seen.read_at}"})
        except TooLarge as error:
            log.warning("%s: the Scene goes without its picture: %s", wanted.device, error)
            return seen.scene
        reference = ScreenshotRef(
            subject=subject, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data),
            size=Size(width=size.width, height=size.height), media_type=size.media_type,
        )  # fmt: skip
        return structs.replace(seen.scene, screenshot=reference)

    async def _record(self, device: str) -> DeviceRecord | None:
        """Raises Transient when it cannot be read: the server writes over it for any client that names its subject as
        the place for an acknowledgement, and its driver writes it again."""
        subject = subjects.device(device)
        stored = await self._bus.get("DEVICES", subject)
        if stored is None:
            return None
        try:
            message = envelope.decode(stored.data)
            envelope.check_subject(message, subject, task=None, device=device, turn=None)
        except WireError as error:
            raise Transient(f"the record of {device} is not believed: {error}", delay_s=_AGAIN_S) from error
        return message.body if isinstance(message.body, DeviceRecord) else None

    async def _without_scene(
        self, delivery: Delivery, wanted: Slot, error: PhoneError | NothingToSee, begun: float
    ) -> Verdict:
        """Try again later, until the phone could not be seen for too long; then the task has failed.

        What counts is the time in which it was looked at here, with usual pauses: while nobody looked, the phone was
        not to blame.
        """
        now = time.monotonic()
        unseen_s, last = self._unseen.pop(wanted, (0.0, begun))
        unseen_s += min(begun - last, _GAP_S) + now - begun
        self._unseen[wanted] = unseen_s, now
        while len(self._unseen) > _WATCHED:
            self._unseen.popitem(last=False)
        if unseen_s < self._settings.give_up_seconds:
            log.warning("%s cannot be seen, trying again: %s", wanted.device, error)
            return Later(_AGAIN_S)
        return await self._failed(delivery, wanted, error)

    async def _failed(self, delivery: Delivery, wanted: Slot, error: PhoneError | NothingToSee | TooLarge) -> Verdict:
        if not is_on_task(await self._record(wanted.device), wanted.task):
            return Done()
        log.error("task %s fails: %s cannot be seen: %s", wanted.task, wanted.device, error)
        started = await self._tasks.started(wanted.device, wanted.task)
        end = TaskFinished(
            status="failed", turns=wanted.turn or 0, finished_at_ms=time.time_ns() // 1_000_000, by=STAGE,
            reason=f"the screen of {wanted.device} cannot be seen", failure_reason=str(error), stage=STAGE,
            goal=started.request.goal,
        )  # fmt: skip
        await self._tasks.fill(wanted.sibling("finished"), end, attempt=new_attempt(), after=delivery.sequence)
        return Done()


def _decode(delivery: Delivery) -> tuple[Slot, TaskStarted | WorldEvent]:
    slot = parse_slot(delivery.subject)
    message = envelope.decode(delivery.data)
    envelope.check_subject(message, delivery.subject, task=slot.task, device=slot.device, turn=slot.turn)
    match slot.kind, message.body:
        case ("started", TaskStarted()) | ("event", WorldEvent()):
            return slot, message.body
        case _:
            raise SubjectMismatch(delivery.subject, f"a {message.kind}")
