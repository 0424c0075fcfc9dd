"""The apps of every simulated phone, besides `system`. A new app is one file here and one name in the list."""

from __future__ import annotations

from typing import Any

from apex_lab.phone.app import App
from apex_lab.phone.apps.clock import Clock
from apex_lab.phone.apps.contacts import Contacts
from apex_lab.phone.apps.game import Game
from apex_lab.phone.apps.launcher import Launcher
from apex_lab.phone.apps.messages import Messages
from apex_lab.phone.apps.notes import Notes
from apex_lab.phone.apps.player import Player
from apex_lab.phone.apps.rail import Rail
from apex_lab.phone.apps.settings import Settings
from apex_lab.phone.apps.shop import Shop
from apex_lab.phone.apps.tasks_ar import Tasks

APPS: tuple[type[App[Any]], ...] = (
    *(Launcher, Settings, Contacts, Tasks, Clock, Notes, Messages, Shop, Rail, Player, Game),
)
LAUNCHER = Launcher
