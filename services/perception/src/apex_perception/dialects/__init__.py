"""Markup in one of the languages that phones and browsers speak, to the one neutral tree."""

from apex_perception.dialects import android, html, xcuitest
from apex_perception.nodes import Tree
from apex_perception.source import Source
from apex_schemas.devices import Platform


def translate(source: Source, platform: Platform | None = None) -> Tree:
    """The tree of a source; its dialect is told by its tags, and by `platform` where they tell nothing."""
    if source.html:
        return html.tree(source.markup)
    names = [tag.name for tag in source.markup.tags[1:4]]
    if "hierarchy" in names or "node" in names:  # first: Appium's fake driver puts whatever it shows into AppiumAUT
        return android.tree(source.markup)
    if any(name == "AppiumAUT" or name.startswith(("XCUIElementType", "UIA")) for name in names):
        return xcuitest.tree(source.markup)
    if platform == "ios":
        return xcuitest.tree(source.markup)
    return android.tree(source.markup)
