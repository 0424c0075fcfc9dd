"""The HTML that a web context gives as its page source: what can be read and acted on, without places.

A page source of a browser holds no rectangles. Elements are listed all the same, as not reachable by coordinate.
"""

from apex_perception.markup import TEXT, Markup, Tag
from apex_perception.nodes import LAYOUT, Node, Tree, cut, ends_of

_SKIPPED = frozenset(("head", "script", "style", "noscript", "template", "option", "svg"))
_KINDS = {"a": "link", "button": "button", "textarea": "field", "select": "select", "img": "image", "canvas": "canvas"}
_INPUTS = {
    "checkbox": "checkbox", "radio": "radio", "range": "slider",
    "submit": "button", "button": "button", "reset": "button", "image": "button",
}  # fmt: skip


def tree(markup: Markup) -> Tree:
    """The neutral tree of a page; its title is kept for the page's name."""
    nodes: list[Node] = []
    kept: list[int] = []
    depths: list[int] = []
    skip_until = 0
    title: str | None = None
    for index, tag in enumerate(markup.tags):
        above = kept[tag.parent] if tag.parent >= 0 else -1
        if tag.name == TEXT and markup.tags[tag.parent].name == "title":
            title = title or " ".join(tag.attributes[TEXT].split())
        hidden = "hidden" in tag.attributes or tag.attributes.get("type") == "hidden"
        if index < skip_until or tag.name in _SKIPPED or hidden:
            skip_until = max(skip_until, markup.ends[index])
            kept.append(above)
            depths.append(0)
            continue
        depth = depths[tag.parent] + 1 if above >= 0 else 0
        kept.append(len(nodes))
        depths.append(depth)
        nodes.append(_node(tag, above, depth))
    return Tree(nodes=nodes, ends=ends_of(nodes), dialect="html", title=title, omitted=markup.omitted)


def _node(tag: Tag, parent: int, depth: int) -> Node:
    if tag.name == TEXT:
        text = cut(" ".join(tag.attributes[TEXT].split()))
        return Node(parent, depth, "text", None, text=text, raw_text=text)
    get = tag.attributes.get
    type_ = get("type", "").lower()
    kind = _INPUTS.get(type_, "field") if tag.name == "input" else _KINDS.get(tag.name, LAYOUT)
    editable = kind == "field"
    password = type_ == "password"
    value = get("value", "") if editable or kind == "slider" else None
    name = get("aria-label") or get("alt") or get("title") or ("" if kind != "button" else get("value", ""))
    return Node(
        parent, depth, kind, None, name=cut(name.strip()),
        value="•••" if password and value else value and cut(value), hint=cut(get("placeholder", "")),
        identifier=get("id", ""), class_name=tag.name, acts=kind not in (LAYOUT, "image", "canvas"), editable=editable,
        enabled="disabled" not in tag.attributes,
        checked="checked" in tag.attributes if kind in ("checkbox", "radio") else None, password=password,
    )  # fmt: skip
