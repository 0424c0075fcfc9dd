"""Contacts: list, form with a keyboard that covers its Save button, detail, questions before losing or deleting.

Asks once for a permission at its first start, unless the phone was told not to ask. Owns the contacts and the draft.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

from apex_lab.phone.app import App
from apex_lab.phone.widgets import (
    Widget,
    bar,
    button,
    column,
    floating,
    icon_button,
    item,
    over,
    recycler,
    row,
    scroll_view,
    space,
    text,
)
from apex_lab.phone.widgets import field as entry
from apex_lab.phone.windows import Window, dialog, page

FIELDS = {"name": "Name", "phone": "Phone", "email": "Email", "company": "Company"}


@dataclass
class Contact:
    name: str
    phone: str = ""
    email: str = ""
    company: str = ""


@dataclass
class ContactsState:
    permission: Literal["unasked", "allowed", "denied"] = "unasked"
    contacts: list[Contact] = field(
        default_factory=lambda: [
            Contact("Ada Lovelace", "+44 20 7946 0001"),
            Contact("Grace Hopper", "+1 202 555 0143"),
        ]
    )
    draft: dict[str, str] = field(default_factory=dict[str, str])


class Contacts(App[ContactsState]):
    package: ClassVar[str] = "com.android.contacts"
    bundle: ClassVar[str] = "com.apple.MobileAddressBook"
    label: ClassVar[str] = "Contacts"

    def fresh(self) -> ContactsState:
        return ContactsState()

    def started(self) -> None:
        if self.state.permission != "unasked":
            return
        if self.phone.permission_popup:
            self.open(self.permission)
        else:
            self.state.permission = "allowed"

    def stopped(self) -> None:
        self.state.draft.clear()

    # -- pages

    def home(self) -> Window:
        known = sorted(self.state.contacts, key=lambda contact: contact.name.casefold())
        rows = [item(each.name, partial(self.show, each), summary=each.phone, rid="contact") for each in known]
        if self.state.permission == "denied":
            rows = [text("Contacts has no access to your contacts.", rid="empty", height=48)]
        everything = column(bar("Contacts"), recycler(rows, rid="list"), grow=True)
        return page(over(everything, floating("Create contact", self.create)), activity=".PeopleActivity")

    def permission(self) -> Window:
        return dialog(
            "Allow Contacts to access your contacts?",
            button("Allow", partial(self.answer, "allowed"), rid="permission_allow_button"),
            space(8),
            button("Don't allow", partial(self.answer, "denied"), rid="permission_deny_button"),
            activity=".permission.ui.GrantPermissionsActivity",
            cancel=None,
            package="com.android.permissioncontroller",
        )

    def form(self) -> Window:
        draft = self.state.draft
        fields: list[Widget] = []
        for key, hint in FIELDS.items():
            fields += [
                entry(hint, draft.get(key, ""), partial(self.type, key), rid=key, max_length=100, on_enter=self.hop),
                space(16),
            ]
        save = button("Save", self.save, rid="save", enabled=bool(draft.get("name", "").strip()))
        return page(
            bar("Create contact", up=self.leave),
            scroll_view(*fields, space(200), save, space(420), text("Simulated account", look="small"), rid="form"),
            activity=".ContactEditorActivity",
            cancel=self.leave,
        )

    def unsaved(self) -> Window:
        return dialog(
            "Discard your changes?",
            row(
                button("Keep editing", self.close, rid="android:id/button2"),
                button("Discard", self.discard, rid="android:id/button1"),
            ),
            activity=".ContactEditorActivity",
            cancel=self.close,
        )

    def detail(self, contact: Contact) -> Window:
        lines = [
            item(getattr(contact, key), summary=label, rid=key)
            for key, label in FIELDS.items()
            if getattr(contact, key)
        ]
        ask = partial(self.open, partial(self.delete_question, contact), "delete_question")
        return page(
            bar("Contact", icon_button("Delete", ask, rid="delete"), up=self.close), *lines, activity=".QuickContact"
        )

    def delete_question(self, contact: Contact) -> Window:
        return dialog(
            f"Delete {contact.name}?",
            row(
                button("Cancel", self.close, rid="android:id/button2"),
                button("Delete", partial(self.delete, contact), rid="android:id/button1"),
            ),
            activity=".QuickContact",
            cancel=self.close,
        )

    # -- what the user does

    def answer(self, permission: Literal["allowed", "denied"]) -> None:
        self.state.permission = permission
        self.close()

    def create(self) -> None:
        self.state.draft.clear()
        self.open(self.form)
        self.phone.focus("name")

    def type(self, key: str, value: str) -> None:
        self.state.draft[key] = value

    def hop(self) -> None:
        """Enter goes to the first empty field."""
        for key in FIELDS:
            if not self.state.draft.get(key):
                self.phone.focus(key)
                return

    def leave(self) -> None:
        if any(self.state.draft.values()):
            self.open(self.unsaved)
        else:
            self.close()

    def discard(self) -> None:
        self.state.draft.clear()
        self.close(2)

    def save(self) -> None:
        self.state.contacts.append(Contact(**{key: self.state.draft.get(key, "").strip() for key in FIELDS}))
        self.state.draft.clear()
        self.close()
        self.phone.toast("Contact saved")

    def show(self, contact: Contact) -> None:
        self.open(partial(self.detail, contact), "detail")

    def delete(self, contact: Contact) -> None:
        self.state.contacts.remove(contact)
        self.close(2)
        self.phone.toast("Contact deleted")
