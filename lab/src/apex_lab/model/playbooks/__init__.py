"""The named playbooks, most particular first; the last one fits every goal."""

from apex_lab.model.playbook import Playbook
from apex_lab.model.playbooks.contact import CONTACT
from apex_lab.model.playbooks.look_around import LOOK_AROUND
from apex_lab.model.playbooks.steps import STEPS
from apex_lab.model.playbooks.toggle import TOGGLE
from apex_lab.model.playbooks.unknown import UNKNOWN

PLAYBOOKS: tuple[Playbook, ...] = (LOOK_AROUND, TOGGLE, CONTACT, STEPS, UNKNOWN)
