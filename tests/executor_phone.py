"""A phone as the executor's look-ups see it: answers from a table, without a driver."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from selenium.common.exceptions import InvalidSelectorException

from apex_executor.phone import Phone
from apex_executor.settings import DeviceConfig
from apex_executor.targets import point_now
from apex_schemas.devices import Platform
from apex_schemas.geometry import Bounds, Point, Size
from apex_schemas.steps import Target

SEEN = Bounds(left=0, top=100, right=200, bottom=200)
AT = Point(x=150, y=120)


def box(left: int, top: int, right: int = 0, bottom: int = 0) -> Bounds:
    return Bounds(left=left, top=top, right=right or left + 200, bottom=bottom or top + 100)


def target(role: str = "button", **fields: Any) -> Target:
    fields = {"resource_id": "a:id/x", "bounds": SEEN, **fields}
    return Target(element="e1", role=role, label="Save", **fields)


class Found(NamedTuple):
    """An element: where it is, or the error that came when it was measured; and what it says of itself."""

    place: Bounds | Exception
    attributes: Mapping[str, str] | None = None

    def get_attribute(self, name: str) -> str:
        if self.attributes is None or name not in self.attributes:
            raise InvalidSelectorException(f"The attribute '{name}' is unknown")
        return self.attributes[name]


class FakePhone:
    """Answers look-ups from a table of parts of strategy and expression: what is not in it is not on the screen; an
    exception is raised as a driver does. `windows`: what `mobile: listWindows` answers, None where it is not known.
    """

    def __init__(
        self,
        found: dict[str, Any] | Exception,
        *,
        platform: Platform = "android",
        web: bool = False,
        windows: list[Any] | None = None,
        page: Any = None,
    ) -> None:
        self.config = DeviceConfig(alias="a", url="http://a", platform=platform)
        self.found, self.web = found, web
        self.dialect, self.scale = ("web" if web else platform), 2.0
        self.windows, self.lists_windows, self.page = windows, windows is not None, page
        self.asked: list[str] = []

    def find(self, by: str, value: str) -> Sequence[Any]:
        self.asked.append(value)
        if isinstance(self.found, Exception):
            raise self.found
        none: list[Any] = []
        places = next((places for part, places in self.found.items() if part in f"{by} {value}"), none)
        return [place if isinstance(place, Found) else Found(place) for place in places]

    def script(self, text: str, **_: Any) -> Any:
        return self.windows if text.startswith("mobile:") else self.page

    def screen(self) -> Size:
        return Size(width=1_000, height=2_000)

    def bounds_of(self, element: Found) -> Bounds:
        if isinstance(element.place, Exception):
            raise element.place
        return element.place


def point(phone: FakePhone, sought: Target | None) -> Point:
    return point_now(cast(Phone, phone), sought, AT)
