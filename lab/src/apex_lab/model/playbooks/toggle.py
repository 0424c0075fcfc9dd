"""Goals `turn on Wi-Fi`, `switch Bluetooth off`, `enable dark mode`, with or without `and report the network name`.

The switch is found by its name wherever it is; the way to it leads through Settings and the entries that usually hold
it.
"""

import re

from apex_lab.model.labels import fit, words
from apex_lab.model.moves import Move, finish
from apex_lab.model.playbook import Playbook
from apex_lab.model.playbooks.interruption import INTERRUPTIONS
from apex_lab.model.screen import Element
from apex_lab.model.situation import Situation, open_app, scroll_for, tap

_PARENTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Wi-Fi", ("Network & internet",)),
    ("Airplane mode", ("Network & internet",)),
    ("Bluetooth", ("Connected devices", "Network & internet")),
    ("Dark theme", ("Display",)),
)
_OTHERS = frozenset(
    [
        "calling",
        "hotspot",
        "scanning",
        "direct",
        "assistant",
        "preferences",
        "sharing",
        "automatically",
        "auto",
        "notifications",
    ]
)
_LIST = "look for the connected one in the list of networks"
_NOT_ENTRIES = ("heading", "title", "image")
_CONNECTED = re.compile(
    r"(?:(?:connected|verbunden|conectado) (?:to|mit|a)|(?:current )?network(?: name)?:|ssid:)"
    r"\s*[\"“”]?(?P<name>[^,\"“”\n]+)",
    re.IGNORECASE,
)


def _what(at: Situation) -> str:
    what = at.slots["what"] or at.slots["what2"] or at.slots["what3"]
    return next((name for name, _ in _PARENTS if fit(name, what) >= 0.9), what)


def _wanted(at: Situation) -> bool:
    word = (at.slots["state"] or at.slots["state2"] or at.slots["verb"]).casefold()
    return word in ("on", "enable", "activate")


def _switch(at: Situation) -> Element | None:
    switches = [element for element in at.elements if element.usable and element.checked is not None]
    sure = at.find(_what(at), among=switches, least=0.9)
    if sure is not None:
        return sure
    likely = [element for element in switches if not _OTHERS & set(words(element.caption))]
    near = at.find(_what(at), among=likely, least=0.7)
    on_its_page = len(switches) == 1 and fit(_what(at), at.prompt.screen.page.rpartition(">")[2]) >= 0.9
    return near or (switches[0] if on_its_page else None)


def network_name(at: Situation) -> tuple[str, str] | None:
    """The name of the connected network and the label that shows it, if the screen has one."""
    for index, line in enumerate(at.elements):
        for shown in (line.label, line.value or ""):
            match = _CONNECTED.search(shown)
            if match and "not connected" not in shown.casefold():
                return match["name"].strip(" ."), shown
        parts = [part.strip() for part in line.label.split(",")]
        if len(parts) > 1 and any(part.casefold() == "connected" for part in parts[1:]):
            return parts[0], line.label
        if line.label.casefold().endswith(" connected") and "not connected" not in line.label.casefold():
            return line.label[: -len("connected")].strip(" ,:"), line.label
        if line.label.casefold() == "connected" and index:
            return at.elements[index - 1].label, line.label
        if line.label and ("connected" in line.states or (line.value or "").casefold() == "connected"):
            return line.label, line.label
    return None


def _set_switch(at: Situation) -> Move | None:
    switch, wanted = _switch(at), _wanted(at)
    if switch is None or switch.checked is wanted:
        return None
    word = "on" if wanted else "off"
    return tap(switch, f'turn {word} "{switch.caption}"', f'"{switch.caption}" is {word}.')


def _report(at: Situation) -> Move | None:
    switch = _switch(at)
    if switch is None:
        return _report_from_list(at)
    state = f"{_what(at)} is {'on' if switch.checked else 'off'}"
    network = network_name(at) if fit("Wi-Fi", _what(at)) >= 0.9 and switch.checked else None
    if network is not None:
        name, shown = network
        return finish(True, f'{state}; connected to "{name}"', answer=name, evidence=shown)
    if not at.slots["report"]:
        return finish(True, state, evidence=switch.caption)
    more = scroll_for(at, "network name", limit=3)
    networks = at.find("Wi-Fi networks", "Available networks", least=0.85)
    if more is None and networks is not None and not at.times(_LIST):
        return tap(networks, _LIST, "The networks are listed, the connected one among them.")
    return more or finish(False, f"{state}, but no network name is shown")


def _report_from_list(at: Situation) -> Move | None:
    """On the list of networks, which has no switch: the one that is connected."""
    network = network_name(at) if at.slots["report"] and at.times(_LIST) else None
    if network is None:
        return None
    return finish(True, f'{_what(at)} is on; connected to "{network[0]}"', answer=network[0], evidence=network[1])


def _enter(at: Situation) -> Move | None:
    entries = [
        element
        for element in at.elements
        if element.usable and element.checked is None and element.role not in _NOT_ENTRIES and not element.is_field
    ]
    parents = next((names for name, names in _PARENTS if name == _what(at)), ())
    for name in (_what(at), *parents):
        entry = at.find(name, among=entries, least=0.7)
        if entry is None or _OTHERS & set(words(entry.caption)):
            continue
        intent = f'open "{entry.caption}" to get to the switch of {_what(at)}'
        if at.times(intent) == at.failed(intent):
            return tap(entry, intent, f'The page "{entry.caption}" is shown.')
    return None


def _leave(at: Situation) -> Move | None:
    """The way up, three times at most."""
    up = at.find("Navigate up", least=0.9)
    intent = "leave this page of Settings"
    return tap(up, intent, "The page above is shown.") if up and at.times(intent) < 3 else None


def _leave_first(at: Situation) -> Move | None:
    """From a page that some earlier task left open there is no use in searching."""
    return None if at.times("to get to the switch of") else _leave(at)


def _search(at: Situation) -> Move | None:
    more = scroll_for(at, _what(at)) or _leave(at)
    page = at.prompt.screen.page or "this screen"
    return more or finish(False, f'there is no switch for {_what(at)} on "{page}": all of it was looked at')


_LEAD = r"(?:please )?(?:(?:open|go to|launch) (?:the )?settings(?: app)?(?:,? (?:and then|and|then)|,) )?"
_WHAT = r"(?:the )?(?P<{0}>(?:(?! and | then |,).)+?)"
_PLACE = r"(?: in (?:the )?settings)?"
_TAIL = r"(?:,? (?:and then|and|then) (?P<report>(?:report|tell|say|read|name|give|note|return|find)\b.*))?"

TOGGLE = Playbook(
    name="toggle",
    goal=re.compile(
        _LEAD
        + r"(?:(?:turn|switch|put) (?P<state>on|off) " + _WHAT.format("what")
        + r"|(?:turn|switch|put) " + _WHAT.format("what2") + r" (?P<state2>on|off)"
        + r"|(?P<verb>enable|disable|activate|deactivate) " + _WHAT.format("what3") + ")"
        + _PLACE + _TAIL,
        re.IGNORECASE,
    ),
    rules=(
        *INTERRUPTIONS,
        _set_switch,
        _report,
        lambda at: open_app(at, "Settings", android="com.android.settings", ios="com.apple.Preferences"),
        _enter,
        _leave_first,
        _search,
    ),
)  # fmt: skip
