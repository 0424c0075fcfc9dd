"""Whether two Scenes show the same: said where a fingerprint can tell, and nowhere else."""

from typing import Any

import pytest

from apex_schemas.geometry import Size
from apex_schemas.scene import Element, Scene, Screen

SHOWN = "5d41402abc4b2a76"


def scene(*elements: Element, **fields: Any) -> Scene:
    return Scene(app=None, page="A", screen=Screen(size=Size(width=1, height=1)), elements=elements, **fields)


def element(role: str, **fields: Any) -> Element:
    return Element(id="e1", role=role, **fields)


@pytest.mark.parametrize(
    "elements", [(), (element("button"),), (element("canvas"),), (element("field", password=True),)]
)
def test_another_fingerprint_is_another_screen_whatever_is_on_it(elements: tuple[Element, ...]) -> None:
    assert scene(*elements, fingerprint=SHOWN).differs_from("0" * 16) is True


def test_the_same_fingerprint_is_the_same_screen() -> None:
    assert scene(element("button"), element("field"), fingerprint=SHOWN).differs_from(SHOWN) is False


@pytest.mark.parametrize(("before", "now"), [("", SHOWN), (SHOWN, ""), ("", "")])
def test_without_both_fingerprints_nothing_is_known(before: str, now: str) -> None:
    assert scene(element("button"), fingerprint=now).differs_from(before) is None


@pytest.mark.parametrize(
    "deaf",
    [
        scene(element("canvas"), fingerprint=SHOWN),
        scene(element("web"), fingerprint=SHOWN),
        scene(element("field", password=True), fingerprint=SHOWN),
        scene(source="screenshot-only", fingerprint=SHOWN),
    ],
    ids=["canvas", "web", "password", "picture"],
)
def test_what_a_fingerprint_is_deaf_to_is_not_said_to_be_the_same(deaf: Scene) -> None:
    assert deaf.differs_from(SHOWN) is None
