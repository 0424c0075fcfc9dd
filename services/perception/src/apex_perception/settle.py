"""One observation: tree, picture, tree, until the screen stands still or the cap comes.

Consumes a Phone (blocking, asked in threads); emits the Scene of the last tree and the picture that belongs to it.
A phone without a tree is tried again, woken once, and then seen by its picture alone.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, NamedTuple, TypeVar

from msgspec import structs

from apex_perception import picture, webview
from apex_perception.appium import Phone
from apex_perception.decide import ReadAgain, Settled, after_reads, wants_picture
from apex_perception.errors import NothingToSee, NoTree, PictureUnreadable, SourceUnavailable
from apex_perception.perceive import View, from_picture, is_bare, perceive, says_little
from apex_perception.settings import PerceptionSettings
from apex_schemas.devices import SessionHandle
from apex_schemas.geometry import Size
from apex_schemas.scene import Scene

_Answer = TypeVar("_Answer")
_SOURCE_TRIES: Final = 3
_RETRY_S: Final = 0.2
_WHOLE_SECOND_MS: Final = 1_000
_WEB_VIEWS: Final = (b"android.webkit.WebView", b"XCUIElementTypeWebView")


class Observation(NamedTuple):
    """`read_at` is when the last reading came, on the monotonic clock."""

    scene: Scene
    picture: bytes | None
    read_at: float


class Observer:
    """Observes through `phone`, whose handle says how many pixels a unit of its coordinates is."""

    def __init__(self, phone: Phone, handle: SessionHandle, settings: PerceptionSettings, threads: Executor) -> None:
        self._phone, self._handle, self._settings, self._threads = phone, handle, settings, threads
        self._last: tuple[bytes, bytes | None, Scene] | None = None

    async def observe(self, *, before: str | None = None, patience_s: float = 0.0) -> Observation:
        """`before` is the fingerprint of the Scene that was acted on.

        Raises PhoneError's kinds, and NothingToSee when neither tree nor picture can be had.
        """
        begun = time.monotonic()
        observed_at_ms = time.time_ns() // 1_000_000
        view = await self._view()
        reads: list[str] = []
        shot: bytes | None = None
        while True:
            try:
                scene = await self._tree(view)
            except (NoTree, SourceUnavailable) as error:
                scene, shot = await self._picture_only(view, error)
                read_at, settled = time.monotonic(), True
                break
            read_at = time.monotonic()
            reads.append(scene.fingerprint)
            step = after_reads(
                reads,
                elapsed_s=read_at - begun,
                before=before,
                patience=patience_s,
                cap_s=self._settings.settle_seconds,
                bare=is_bare(scene),
            )
            match step:
                case Settled(settled):
                    break
                case ReadAgain(pause_s):
                    if len(reads) == 1 or reads[-1] != reads[-2] or shot is None:
                        shot = await self._shot(scene)
                    await asyncio.sleep(pause_s)
        scene = structs.replace(
            scene,
            settled=settled,
            observed_at_ms=observed_at_ms + round((read_at - begun) * _WHOLE_SECOND_MS),
            observe_ms=round((time.monotonic() - begun) * _WHOLE_SECOND_MS),
        )
        return Observation(scene, shot if self._wanted(scene) else None, read_at)

    async def _view(self) -> View:
        """What the device says of its screen, read for each Scene: it may have been turned since the last."""
        handle = self._handle
        if handle.web:
            return View(platform=handle.platform)
        window = await self._ask(self._window)
        rotation = await self._ask(self._phone.rotation) if handle.platform == "ios" else None
        return View(
            platform=handle.platform, window=window, scale=handle.scale, rotation=rotation,
        )  # fmt: skip

    def _window(self) -> Size | None:
        try:
            size = self._phone.window()
        except SourceUnavailable:
            return None
        return size if size.width and size.height else None

    async def _tree(self, view: View) -> Scene:
        """Tried a few times: a tree may be missing while windows change, and behind a dark screen."""
        for attempt in range(1, _SOURCE_TRIES + 1):
            try:
                scene = await self._read(view)
                if says_little(scene) and await self._ask(self._phone.look_deeper):
                    scene = await self._read(view)  # a busy screen may lie below the depth at which drivers stop
                return scene
            except (NoTree, SourceUnavailable):
                if attempt == _SOURCE_TRIES:
                    raise
                if attempt == 1:
                    await self._ask(self._phone.wake)
            await asyncio.sleep(_RETRY_S)
        raise AssertionError("unreachable")

    async def _read(self, view: View) -> Scene:
        """One reading: the tree, and where an app shows a page, what the page says of itself."""
        data = await self._ask(self._phone.source)
        page = None
        if not self._handle.web and any(sign in data for sign in _WEB_VIEWS):
            page = await self._ask(partial(self._phone.page, webview.app_of(data)))
        if self._last is None or self._last[:2] != (data, page):
            scene = await self._ask(partial(perceive, data, structs.replace(view, page=page)))
            self._last = data, page, scene
        return self._last[2]

    async def _picture_only(self, view: View, reason: Exception) -> tuple[Scene, bytes]:
        try:
            shot = await self._ask(self._phone.screenshot)
            size = picture.measure(shot)
        except (SourceUnavailable, PictureUnreadable) as error:
            raise NothingToSee(reason, error) from error
        scene = from_picture(structs.replace(view, picture=Size(width=size.width, height=size.height)), str(reason))
        return structs.replace(scene, fingerprint=hashlib.blake2b(shot, digest_size=8).hexdigest()), shot

    async def _shot(self, scene: Scene) -> bytes | None:
        """A picture for the planner; the tree is told without one where none can be had."""
        if not self._wanted(scene):
            return None
        try:
            return await self._ask(self._phone.screenshot)
        except SourceUnavailable:
            return None

    def _wanted(self, scene: Scene) -> bool:
        little = scene.source == "screenshot-only" or says_little(scene)
        return wants_picture(self._settings.screenshot, tree_says_little=little)

    async def _ask(self, call: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)
