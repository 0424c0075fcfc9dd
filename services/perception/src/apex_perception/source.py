"""What a phone sent as its page source, to markup: decoded, found, parsed, stripped, mended, recovered, in this order.

Consumes bytes, whatever they are; emits Markup and the steps that were taken. Each step is tried only when the ones
before it were not enough, and says what it did.
"""

import msgspec

from apex_perception import decoding, markup, repair
from apex_perception.errors import NoTree, SourceEmpty, SourceRefused, SourceTooLarge
from apex_perception.markup import Markup

MAX_SOURCE_BYTES = 32 * 1024 * 1024
ROOT = "apex-root"
"""The tag put around everything, so that several roots are one tree."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    markup: Markup
    steps: tuple[str, ...] = ()
    html: bool = False


def read(data: bytes) -> Source:
    """The tree in `data`. Raises NoTree, or SourceEmpty, SourceRefused, SourceTooLarge of its kind."""
    if len(data) > MAX_SOURCE_BYTES:
        raise SourceTooLarge(len(data), MAX_SOURCE_BYTES)
    if not data.strip():
        raise SourceEmpty
    text, step = decoding.decode(data)
    steps = [step] if step else []
    text, unwrapped = _unwrapped(text)
    steps += unwrapped
    if repair.declares_entities(text[:100_000]):
        raise SourceRefused
    tree, cuts = repair.cut_out(text)
    if not tree:
        raise NoTree(f"it reads {_beginning(text)!r}")
    steps += cuts
    if "\r\r\n" in tree:
        tree = tree.replace("\r\r\n", "\n")
        steps.append("doubled line ends joined")
    if tree[:5].lower() == "<html":
        return _html(tree, steps)
    return _xml(tree, steps)


def _html(tree: str, steps: list[str]) -> Source:
    tree, stripped = repair.strip_forbidden(tree)
    steps += stripped
    found = markup.read_html(tree)
    if found is None or not found.tags:
        raise NoTree("a page without elements")
    return Source(markup=found, steps=tuple(steps), html=True)


def _xml(tree: str, steps: list[str]) -> Source:
    found = markup.read_xml(_wrapped(tree))
    if found is None:
        tree, stripped = repair.strip_forbidden(tree)
        steps += stripped
        found = markup.read_xml(_wrapped(tree)) if stripped else None
    if found is None:
        found = _recovered(tree, steps)
    if len(found.tags) < 2:
        raise NoTree(f"it reads {_beginning(tree)!r}")
    roots = sum(1 for tag in found.tags if tag.parent == 0)
    if roots > 1:
        steps.append(f"{roots} trees joined")
    return Source(markup=found, steps=tuple(steps))


def _recovered(tree: str, steps: list[str]) -> Markup:
    mended = repair.mend(tree)
    if mended != tree:
        steps.append("characters inside attributes or tag names escaped")
    found = markup.read_xml(_wrapped(mended))
    if found is not None:
        return found
    torn = repair.without_torn_end(mended)
    if torn != mended:
        steps.append("a tag cut in the middle left out")
    steps.append("what was not well-formed left out; elements may be missing")
    return markup.recover_xml(_wrapped(torn))


def _wrapped(tree: str) -> str:
    return f"<{ROOT}>{tree}</{ROOT}>"


def _unwrapped(text: str) -> tuple[str, list[str]]:
    """The page source inside a WebDriver answer that was saved as it came."""
    if not text.lstrip().startswith("{"):
        return text, []
    try:
        value = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=_Answer).value
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text, []
    match value:
        case str():
            return value, ["taken out of a WebDriver answer"]
        case {"error": error, "message": message}:
            raise NoTree(f"the server answered {error}: {_beginning(str(message))}")
        case _:
            return text, []


class _Answer(msgspec.Struct):
    value: str | dict[str, object]


def _beginning(text: str) -> str:
    return " ".join(text[:200].split())[:80]
