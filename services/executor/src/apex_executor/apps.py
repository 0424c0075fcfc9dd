"""Which package a label means. A model may name an app by what stands under its icon."""

from collections.abc import Mapping
from typing import Final

from apex_schemas.devices import Platform

ANDROID: Final = {
    "settings": "com.android.settings",
    "chrome": "com.android.chrome",
    "camera": "com.android.camera2",
    "clock": "com.google.android.deskclock",
    "calculator": "com.google.android.calculator",
    "calendar": "com.google.android.calendar",
    "contacts": "com.google.android.contacts",
    "messages": "com.google.android.apps.messaging",
    "phone": "com.google.android.dialer",
    "maps": "com.google.android.apps.maps",
    "photos": "com.google.android.apps.photos",
    "play store": "com.android.vending",
    "youtube": "com.google.android.youtube",
    "gmail": "com.google.android.gm",
    "files": "com.google.android.documentsui",
}
IOS: Final = {
    "settings": "com.apple.Preferences",
    "safari": "com.apple.mobilesafari",
    "messages": "com.apple.MobileSMS",
    "contacts": "com.apple.MobileAddressBook",
    "calendar": "com.apple.mobilecal",
    "clock": "com.apple.mobiletimer",
    "camera": "com.apple.camera",
    "photos": "com.apple.mobileslideshow",
    "notes": "com.apple.mobilenotes",
    "maps": "com.apple.Maps",
    "app store": "com.apple.AppStore",
}


def candidates(name: str, platform: Platform, configured: Mapping[str, str]) -> tuple[str, ...]:
    """The packages or bundle ids that a name may mean, likeliest first: the installation's own list, ours, the name."""
    known = ANDROID if platform == "android" else IOS
    own = {label.casefold(): package for label, package in configured.items()}
    wanted = name.strip().casefold()
    found = (own.get(wanted), known.get(wanted), name.strip() if "." in name and " " not in name.strip() else None)
    return tuple(dict.fromkeys(package for package in found if package))


def matching(name: str, installed: Mapping[str, str]) -> str | None:
    """The one installed package whose label is `name`, or that has it among the parts of its own name; None where no
    or more than one does. `installed`: package → label, which may be empty."""
    wanted = name.strip().casefold()
    if not wanted:
        return None
    labelled = [package for package, label in installed.items() if label.casefold() == wanted]
    word = "".join(wanted.split())
    named = [package for package in installed if word in package.casefold().split(".")[1:]]
    found = labelled or named
    return found[0] if len(found) == 1 else None
