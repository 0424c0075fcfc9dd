"""Goals `create a contact named "Zoë" with phone 123`: open Contacts, fill the form, save, see it in the list."""

import re
import unicodedata

from apex_lab.model.labels import fit, likeness
from apex_lab.model.moves import Move, Type, finish
from apex_lab.model.playbook import Playbook
from apex_lab.model.playbooks.interruption import INTERRUPTIONS
from apex_lab.model.screen import Element
from apex_lab.model.situation import Situation, open_app, scroll_for, tap

_SAVE = "save the contact"


def _plain(text: str | None) -> str:
    return unicodedata.normalize("NFC", text or "").strip()


def _digits(text: str | None) -> str:
    return "".join(character for character in text or "" if character.isdigit())


def _name(at: Situation) -> str:
    return at.slots["name"].strip("\"'“”„«»‘’ ")


def _phone(at: Situation) -> str:
    return at.slots["phone"].strip("\"'“”„«» ")


def _in_form(at: Situation) -> bool:
    named = at.find("Name", "First name", "Phone", among=at.fields())
    return named is not None or any(fit("Save", line.label) >= 0.9 for line in at.elements if line.id is not None)


def _saved(at: Situation) -> bool:
    """Whether the form was sent off; without rationales: whether something was typed and the list is back."""
    if any(turn.rationale for turn in at.history):
        return at.times(_SAVE) > at.failed(_SAVE)
    on_list = at.find("Create contact", least=0.85) is not None
    return on_list and any(turn.tool == "input_text" for turn in at.history)


def _seen(at: Situation, least: float) -> Element | None:
    lines = (line for line in at.elements if not line.is_field)
    return next((line for line in lines if likeness(_name(at), line.label) >= least), None)


def _done(at: Situation) -> Move | None:
    if _in_form(at):
        return None
    saved = _saved(at)
    if saved and (line := _seen(at, 0.7)):
        return finish(True, f'the contact "{_name(at)}" is saved and shown', answer=_name(at), evidence=line.label)
    if not saved and not _phone(at) and at.in_app("contacts") and (line := _seen(at, 0.95)):
        return finish(True, f'a contact "{_name(at)}" is already there', answer=_name(at), evidence=line.label)
    if saved and at.in_app("contacts"):
        return scroll_for(at, _name(at)) or finish(False, f'"{_name(at)}" was saved but is not in the list')
    return None


def _typed(at: Situation, text: str) -> bool:
    """Whether an earlier turn typed this; a field that has been scrolled out of sight cannot be read."""
    typed = [turn for turn in at.history if turn.tool == "input_text" and turn.success is not False]
    return any(f'type "{text[:60]}" into' in turn.rationale or text[:30] in turn.action for turn in typed)


def _fill_name(at: Situation) -> Move | None:
    if not _in_form(at) or any(_plain(field.value) == _plain(_name(at)) for field in at.fields()):
        return None
    first, last = (at.find(name, among=at.fields(), least=0.9) for name in ("First name", "Last name"))
    given, _, family = _name(at).rpartition(" ")
    if first is not None and last is not None and given:
        return _fill(first, given) or _fill(last, family)
    field = at.find("Name", "First name", among=at.fields())
    if field is not None:
        return _fill(field, _name(at))
    return None if _typed(at, _name(at)) else scroll_for(at, "Name")


def _fill_phone(at: Situation) -> Move | None:
    wanted = _digits(_phone(at))
    if not wanted or not _in_form(at) or any(_digits(field.value) == wanted for field in at.fields()):
        return None
    field = at.find("Phone", among=at.fields())
    if field is not None:
        return _type(field, _phone(at))
    if _typed(at, _phone(at)):
        return None
    more = at.find("Add phone", "More fields", least=0.9)
    intent = "show the field for the phone number"
    if more is not None and at.times(intent) < 2:
        return tap(more, intent, "A field for the phone number is shown.")
    return scroll_for(at, "Phone") or finish(False, "the form has no field for a phone number")


def _fill(field: Element, text: str) -> Move | None:
    return None if _plain(field.value) == _plain(text) else _type(field, text)


def _type(field: Element, text: str) -> Move:
    return Move(
        act=Type(text=text, element=field),
        intent=f'type "{text[:60]}" into "{field.hint or field.caption}"',
        expect=f'The field shows "{text}".',
    )


def _save(at: Situation) -> Move | None:
    if not _in_form(at):
        return None
    button = at.find("Save", least=0.85)
    if button is not None:
        return tap(button, f'{_SAVE} with "{button.label}"', f'"{_name(at)}" is in the list of contacts.')
    return scroll_for(at, "Save") or finish(False, "the form has no button that saves")


def _create(at: Situation) -> Move | None:
    button = at.find("Create contact", least=0.85) if at.in_app("contacts") else None
    return tap(button, f'start a new contact with "{button.label}"', "An empty form is shown.") if button else None


def _leave(at: Situation) -> Move | None:
    up = at.find("Navigate up", least=0.9) if at.in_app("contacts") else None
    intent = "go back to the list of contacts"
    return tap(up, intent, "The list of contacts is shown.") if up and at.times(intent) < 3 else None


def _search(at: Situation) -> Move | None:
    return scroll_for(at, "Create contact") or finish(False, "there is no button that creates a contact")


CONTACT = Playbook(
    name="contact",
    goal=re.compile(
        r"(?:please )?(?:(?:open|go to|launch) (?:the )?contacts(?: app)?(?:,? (?:and then|and|then)|,) )?"
        r"(?:create|add|make|save)(?: a| the)?(?: new)? contact(?: (?:named|called|for|with(?: the)? name))? ?:? ?"
        r"(?P<name>.+?)"
        r"(?:,? (?:with|and|having)(?: the| a)? (?:phone|telephone|mobile)?(?: ?number)?:? ?"
        r"(?P<phone>[\"“]?\+?[\d()/ .-]{3,}[\"”]?))?"
        r"(?:,? (?:and then|and|then) (?:save|report|tell|say|check|verify|confirm|make sure)\b.*)?",
        re.IGNORECASE,
    ),
    rules=(
        *INTERRUPTIONS,
        _done,
        _fill_name,
        _fill_phone,
        _save,
        _create,
        lambda at: open_app(at, "Contacts", android="com.android.contacts", ios="com.apple.MobileAddressBook"),
        _leave,
        _search,
    ),
)
