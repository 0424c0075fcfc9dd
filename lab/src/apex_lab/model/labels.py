"""How well a label on screen fits a wanted name: pure text comparison, with the words phones use for one thing.

Consumes names and labels; emits a score from 0 (no) to 1 (the same). A playbook names a thing once ("save") and finds
it under any of its names, in any case, with or without hyphens, and with a summary behind it ("Wi-Fi, on").
"""

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache

ENOUGH = 0.6

SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("Wi-Fi", "WLAN", "Use Wi-Fi", "Wireless", "Wireless LAN", "Wireless network", "واي فاي"),
    (
        "Network & internet",
        "Network",
        "Networks",
        "Connections",
        "Wireless & networks",
        "Internet",
        "Netzwerk & Internet",
    ),
    ("Bluetooth", "Use Bluetooth"),
    ("Airplane mode", "Aeroplane mode", "Flight mode", "Flugmodus"),
    ("Connected devices", "Device connectivity"),
    ("Display", "Screen", "Display & brightness", "Display & touch"),
    ("Dark theme", "Dark mode", "Dark"),
    ("Settings", "System settings", "Preferences", "Einstellungen", "Ajustes", "الإعدادات"),
    ("Contacts", "People", "Address book", "Phone book", "Kontakte", "Contactos", "جهات الاتصال"),
    (
        "Create contact",
        "Create new contact",
        "New contact",
        "Add contact",
        "Add new contact",
        "Add person",
        "Create",
        "Add",
        "+",
    ),
    ("Save", "Done", "Save contact", "Store", "Confirm", "Speichern", "Guardar", "حفظ"),
    ("Name", "Full name", "Display name", "Contact name", "Your name", "Nombre", "الاسم"),
    ("First name", "Given name", "Forename"),
    ("Last name", "Surname", "Family name"),
    ("Phone", "Phone number", "Mobile", "Telephone", "Number", "Tel", "Telefon", "الهاتف"),
    (
        "Allow",
        "While using the app",
        "Allow while using the app",
        "Only this time",
        "Grant",
        "Zulassen",
        "Permitir",
        "سماح",
    ),
    ("Deny", "Don't allow", "Don’t allow", "Refuse", "Ablehnen", "Denegar", "رفض"),
    ("Navigate up", "Back", "Go back", "Up", "Zurück", "Atrás", "رجوع"),
    (
        "Not now",
        "No thanks",
        "Skip",
        "Later",
        "Maybe later",
        "Got it",
        "Dismiss",
        "Close",
        "Wait",
        "Keep editing",
        "OK",
        "Cancel",
    ),
)

_HYPHENS = re.compile(r"(?<=\w)[-‐‑‒–](?=\w)")
_HEAD = re.compile(r"[,:\n·•|]")
_SPLIT = re.compile(r"[^\w+]+")


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a label for comparison: folded case, no marks of direction, `Wi-Fi` and `WiFi` alike."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("&", " and ")
    folded = _HYPHENS.sub("", folded).replace("wi fi", "wifi")
    return tuple(word for word in _SPLIT.split(folded) if word)


@lru_cache(maxsize=512)
def names(wanted: str) -> tuple[str, ...]:
    """The wanted name first, then the other names of the same thing."""
    key = words(wanted)
    for group in SYNONYMS:
        if any(words(name) == key for name in group):
            return (wanted, *(name for name in group if words(name) != key))
    return (wanted,)


@lru_cache(maxsize=16384)
def likeness(wanted: str, label: str) -> float:
    """0 to 1: how well this very name fits this label; synonyms are not considered."""
    want, have = words(wanted), words(label)
    if not want or not have:
        return 1.0 if wanted.strip() and wanted.strip() == label.strip() else 0.0
    if want == have:
        return 1.0
    if want == words(_HEAD.split(label, maxsplit=1)[0]):
        return 0.97
    if have[: len(want)] == want:
        return 0.85
    if any(have[start : start + len(want)] == want for start in range(1, len(have) - len(want) + 1)):
        return 0.75
    if set(want) <= set(have):
        return 0.7
    joined_want, joined_have = " ".join(want), " ".join(have)
    if len(joined_have) >= 4 and want[: len(have)] == have:
        return 0.62
    close = len(joined_want) >= 5 and SequenceMatcher(None, joined_want, joined_have).ratio() >= 0.85
    return ENOUGH if close else 0.0


def fit(wanted: str, label: str) -> float:
    """Likeness of the label to the wanted name or, a little less, to another name of the same thing."""
    first, *others = names(wanted)
    best = likeness(first, label)
    for other in others:
        best = max(best, 0.95 * likeness(other, label))
    return best
