"""perceive and plan: perception and planner on saved screens, without NATS, a phone or a database.

Both packages are imported when they are used: an installation of the client alone has neither.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click
import msgspec

from apex_bus.errors import SettingsError
from apex_cli import sources
from apex_cli.errors import BadInput, CommandError, NotInstalled
from apex_cli.planned import record, shown_plan
from apex_cli.report.wireframe import alone
from apex_cli.scenes import shown_scene
from apex_cli.text import console
from apex_schemas.decision import Picture
from apex_schemas.edge import is_blank
from apex_schemas.geometry import Size
from apex_schemas.scene import Scene, SemanticScene
from apex_schemas.wireframe import wireframe

if TYPE_CHECKING:
    from apex_planner.once import PlanReport

Platform = Literal["android", "ios"]
_SIZE: Final = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_PLATFORM: Final = click.option("--platform", type=click.Choice(["android", "ios"]), help="Default: told by the file.")
_SCREEN: Final = click.option("--screen", metavar="WxH", help="The device's size, in units of the source or in pixels.")
_SCALE: Final = click.option("--scale", type=click.FloatRange(0.1, 16), help="Pixels per unit of the source.")
_SCREENSHOT: Final = click.option("--screenshot", type=click.Path(path_type=Path), metavar="PNG", help="Its picture.")


class NoDecision(CommandError):
    def __init__(self, outcome: str, reason: str | None) -> None:
        super().__init__(f"no decision: {outcome}: {reason or 'no reason was given'}")


@click.command(short_help="What the system sees in a saved page source.")
@click.argument("file", type=click.Path(path_type=Path))
@_PLATFORM
@_SCREEN
@_SCALE
@_SCREENSHOT
@click.option("--json", "form", flag_value="json", help="The Scene as JSON, as `apex plan --scene` reads it.")
@click.option("--prompt", "form", flag_value="prompt", help="The text that a model would be shown.")
@click.option("--svg", "form", flag_value="svg", help="A drawing of it: boxes, ids, labels.")
def perceive(
    file: Path,
    platform: Platform | None,
    screen: str | None,
    scale: float | None,
    screenshot: Path | None,
    form: str | None,
) -> None:
    """The Scene of a saved page source: FILE holds the bytes as they came from the phone, whatever they are."""
    scene = _perceived(file, _read(file), platform, screen, scale, screenshot)
    match form:
        case "json":
            click.echo(msgspec.json.format(msgspec.json.encode(scene), indent=2).decode())
        case "prompt":
            click.echo(_prompt(scene))
        case "svg":
            click.echo(alone(wireframe(scene), scene.page))
        case _:
            console().print(shown_scene(scene))


@click.command(short_help="One decision of a model on a saved screen.")
@click.option("--scene", "file", type=click.Path(path_type=Path), required=True, metavar="FILE",
              help="A Scene as JSON, or a page source.")  # fmt: skip
@click.option("--goal", required=True, help="What is to be done.")
@click.option("--provider", type=click.Choice(["anthropic", "openai"]), help="Default: AI_PLANNER_PROVIDER.")
@click.option("--model", help="Default: AI_PLANNER_MODEL.")
@click.option("--base-url", metavar="URL", help="Of a server that speaks the provider's API.")
@_PLATFORM
@_SCREEN
@_SCALE
@_SCREENSHOT
@click.option("--json", "as_json", is_flag=True, help="Outcome, attempts, tool, arguments, rationale, usage, error.")
def plan(
    file: Path,
    goal: str,
    provider: str | None,
    model: str | None,
    base_url: str | None,
    platform: Platform | None,
    screen: str | None,
    scale: float | None,
    screenshot: Path | None,
    as_json: bool,
) -> None:
    """One decision of the planner on a saved screen, asked of the provider directly. This may cost money.

    AI_PLANNER_* and the provider's key (ANTHROPIC_API_KEY or OPENAI_API_KEY) are read from the environment. The
    scripted model costs nothing and needs no key: --model scripted-current --base-url URL, with the URL that `apex up`
    prints, or see docs/howto/saved-screens.md.
    """
    if is_blank(goal):
        raise BadInput("the goal is blank; say what is to be done")
    data = _read(file)
    scene = _scene(data) if data.lstrip()[:1] == b"{" else _perceived(file, data, platform, screen, scale, screenshot)
    given = {"AI_PLANNER_PROVIDER": provider, "AI_PLANNER_MODEL": model, "AI_PLANNER_BASE_URL": base_url}
    environ = {**os.environ, **{name: value for name, value in given.items() if value}}
    report = _planned(scene, goal, environ, _picture(screenshot))
    told = record(report)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
    else:
        console().print(shown_plan(told))
    if told.outcome != "planned":
        raise NoDecision(told.outcome, told.error)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error


def _perceived(
    file: Path,
    data: bytes,
    platform: Platform | None,
    screen: str | None,
    scale: float | None,
    screenshot: Path | None,
) -> Scene:
    with _perception():
        from apex_perception.decoding import decode
        from apex_perception.perceive import perceive_file

        picture = _read(screenshot) if screenshot else None
        if (what := sources.foreign(data, decode(data)[0])) is not None:
            raise BadInput(f"{file} is no page source: {what}")
        scene = perceive_file(data, platform=platform, screen=_size(screen), scale=scale, screenshot=picture)
    if (odd := sources.doubt(scene)) is not None:
        click.echo(f"apex: {odd}", err=True)
    return scene


@contextmanager
def _perception() -> Generator[None]:
    """Turns what perception finds wrong with a file, and its absence, into errors of the command."""
    try:
        from apex_perception.errors import PerceptionError
    except ImportError as error:
        raise NotInstalled("apex-perception") from error
    try:
        yield
    except PerceptionError as error:
        raise BadInput(str(error)) from error


def _size(text: str | None) -> Size | None:
    if text is None:
        return None
    if (found := _SIZE.fullmatch(text)) is None:
        raise click.BadParameter(f"{text!r} is no size such as 1080x2400", param_hint="--screen")
    return Size(width=int(found[1]), height=int(found[2]))


def _scene(data: bytes) -> Scene:
    try:
        return msgspec.json.decode(data, type=Scene | SemanticScene)
    except msgspec.MsgspecError as error:
        raise BadInput(f"the Scene cannot be read: {error}; `apex perceive FILE --json` writes one") from error


def _prompt(scene: Scene) -> str:
    try:
        from apex_planner.scene_text import write_scene
    except ImportError as error:
        raise NotInstalled("apex-planner") from error
    return write_scene(scene)


def _picture(screenshot: Path | None) -> Picture | None:
    if screenshot is None:
        return None
    data = _read(screenshot)
    with _perception():
        from apex_perception.picture import measure

        size = measure(data)
    return Picture(
        data=data,
        media_type="image/png" if data[:1] == b"\x89" else "image/jpeg",
        size=Size(width=size.width, height=size.height),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _planned(scene: Scene, goal: str, environ: Mapping[str, str], picture: Picture | None) -> "PlanReport":
    try:
        from apex_planner.clients.choose import provider_client
        from apex_planner.once import plan_once
        from apex_planner.settings import load_provider
    except ImportError as error:
        raise NotInstalled("apex-planner") from error
    try:
        settings = load_provider(environ)
    except SettingsError as error:
        raise BadInput(f"{error}. The scripted model needs neither: docs/howto/saved-screens.md") from error
    client = provider_client(settings)
    return asyncio.run(plan_once(scene, goal, client, picture=picture, tool_set=settings.planner.tools))
