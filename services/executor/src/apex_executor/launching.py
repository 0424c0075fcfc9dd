"""Starting and ending apps, by package or by what stands under their icon; and seeing that it came so."""

import time
from collections.abc import Callable
from typing import Any, Final, cast

from selenium.common.exceptions import WebDriverException

from apex_executor.apps import candidates, matching
from apex_executor.errors import ActRefused
from apex_executor.outcomes import Outcome
from apex_executor.phone import Phone

_FOREGROUND: Final = 4
_SETTLES_S: Final = 3.0
_LOOK_S: Final = 0.2
_NOT_INSTALLED: Final = ("unknown or not installed", "is it installed on the device")
_NOT_LAUNCHABLE: Final = (
    "launchable activity", "cannot be launched", "securityexception", "not exported", "permission denial",
    "has been denied", "no activity found", "monkey aborted", "cannot activate",
)  # fmt: skip
_DONE: Final = Outcome(success=True)


def launch(phone: Phone, app: str) -> Outcome:
    """Open an app and wait, for some seconds, until it is in front."""
    package = _installed(phone, app)
    try:
        phone.driver.activate_app(package)
    except WebDriverException as error:
        raise _refusal(app, error) from error
    if _comes(lambda: phone.driver.query_app_state(package) == _FOREGROUND):
        return _DONE
    message = f"{app!r} was asked to open and has not come in front; look at what did"
    return Outcome(success=False, code="NOT_LAUNCHABLE", message=message)


def terminate(phone: Phone, app: str) -> Outcome:
    """End an app and see that it has gone from the front."""
    package = _installed(phone, app)
    phone.driver.terminate_app(package)
    if _comes(lambda: phone.driver.query_app_state(package) != _FOREGROUND):
        return _DONE
    return Outcome(success=False, code="STILL_RUNNING", message=f"{app!r} is still in the foreground")


def package_of(phone: Phone, app: str) -> str | None:
    """The installed package or bundle id that a name means; None when there is none."""
    _needs_apps(phone)
    for package in candidates(app, phone.config.platform, phone.config.apps):
        if phone.driver.is_app_installed(package):
            return package
    return matching(app, _listed(phone))


def _installed(phone: Phone, app: str) -> str:
    package = package_of(phone, app)
    if package is None:
        raise ActRefused("APP_NOT_INSTALLED", f"no app {app!r} is installed; give its package, or tap its icon")
    return package


def _needs_apps(phone: Phone) -> None:
    if phone.dialect == "web":
        raise ActRefused("NOT_SUPPORTED", "a browser has no apps")


def _listed(phone: Phone) -> dict[str, str]:
    """Package → label, as far as the driver tells: UiAutomator2 knows packages only, XCUITest of real devices both."""
    try:
        told = phone.script("mobile: listApps")
    except WebDriverException:
        return {}
    if not isinstance(told, dict):
        return {}
    return {package: _label(about) for package, about in cast("dict[str, Any]", told).items()}


def _label(about: Any) -> str:
    if not isinstance(about, dict):
        return ""
    known = cast("dict[str, Any]", about)
    return str(known.get("CFBundleDisplayName") or known.get("CFBundleName") or "")


def _refusal(app: str, error: WebDriverException) -> Exception:
    """What a driver says when an app cannot be started: it has not been; any other error stays what it is."""
    text = str(error.msg or "").lower()
    if any(words in text for words in _NOT_INSTALLED):
        return ActRefused("APP_NOT_INSTALLED", f"no app {app!r} is installed")
    if any(words in text for words in _NOT_LAUNCHABLE):
        return ActRefused("NOT_LAUNCHABLE", f"{app!r} is installed and cannot be opened from outside; tap its icon")
    return error


def _comes(check: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _SETTLES_S
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True
