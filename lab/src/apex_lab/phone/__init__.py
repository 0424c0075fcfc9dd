"""Phones that are not there: simulated with apps and true state, or recorded from page sources; Appium's protocol.

`serve` answers as an Appium server with UiAutomator2 phones does; `python -m apex_lab.phone` runs it.
"""

from apex_lab.phone.phone import Phone
from apex_lab.phone.recorded import RecordedPhone, recorded_phones
from apex_lab.phone.server import PhoneServer, serve

__all__ = ["Phone", "PhoneServer", "RecordedPhone", "recorded_phones", "serve"]
