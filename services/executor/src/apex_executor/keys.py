"""Keys and buttons, in each dialect: UiAutomator2 takes key codes, XCUITest named buttons and typed characters."""

from typing import Final

from appium.webdriver.common.appiumby import AppiumBy
from selenium.common.exceptions import NoSuchElementException

from apex_executor.errors import ActRefused
from apex_executor.phone import Phone

_HOME: Final = 3
_KEYCODES: Final = {
    "enter": 66, "delete": 67, "tab": 61, "search": 84, "volume_up": 24, "volume_down": 25, "app_switch": 187,
}  # fmt: skip
_IOS_BUTTONS: Final = {"volume_up": "volumeup", "volume_down": "volumedown"}
_TYPED: Final = {"enter": "\n", "search": "\n", "tab": "\t", "delete": "\b"}
_BROWSER_KEYS: Final = {"enter": "\ue007", "search": "\ue007", "tab": "\ue004", "delete": "\ue003"}
_NAVIGATION: Final = "type == 'XCUIElementTypeNavigationBar'"


def back(phone: Phone) -> None:
    """On iOS the driver says nothing when there is no way back: it is looked for here."""
    if phone.dialect == "ios" and not phone.find(AppiumBy.IOS_PREDICATE, _NAVIGATION):
        raise ActRefused("NOT_SUPPORTED", "this screen has no navigation bar to go back by; use what is on it")
    phone.driver.back()


def home(phone: Phone) -> None:
    match phone.dialect:
        case "android":
            phone.driver.press_keycode(_HOME)
        case "ios":
            phone.script("mobile: pressButton", name="home")
        case "web":
            raise ActRefused("NOT_SUPPORTED", "a browser has no home screen")


def press_key(phone: Phone, key: str) -> None:
    match phone.dialect:
        case "android":
            phone.driver.press_keycode(_KEYCODES[key])
        case "ios" if key in _IOS_BUTTONS:
            phone.script("mobile: pressButton", name=_IOS_BUTTONS[key])
        case "ios" if key in _TYPED:
            _type(phone, _TYPED[key])
        case "web" if key in _BROWSER_KEYS:
            _type(phone, _BROWSER_KEYS[key])
        case _:
            raise ActRefused("NOT_SUPPORTED", f"this device has no key {key!r}")


def _type(phone: Phone, text: str) -> None:
    try:
        phone.driver.switch_to.active_element.send_keys(text)
    except NoSuchElementException as error:
        raise ActRefused("NO_FOCUS", "no field has the focus; tap the field first") from error
