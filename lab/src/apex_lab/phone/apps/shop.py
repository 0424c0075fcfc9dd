"""Shop: three hundred products, a basket, a sign-in with a password, a sheet for paying, and pages from the web.

Owns the basket, who is signed in, the orders, and whether the terms were accepted on their web page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from apex_lab.phone import web
from apex_lab.phone.app import App
from apex_lab.phone.widgets import Widget, bar, button, column, icon_button, item, recycler, row, space, text
from apex_lab.phone.widgets import field as entry
from apex_lab.phone.windows import Window, page, sheet

_KINDS = ("Lamp", "Chair", "Kettle", "Notebook", "Backpack", "Headphones", "Clock", "Mug", "Blanket", "Screwdriver")
_STYLES = ("Oak", "Steel", "Blue", "Mini", "Classic", "Nordic")
PRODUCTS: dict[str, int] = {
    f"{_STYLES[n // len(_KINDS) % len(_STYLES)]} {_KINDS[n % len(_KINDS)]} {n + 1}": 399 + 137 * n % 9000
    for n in range(300)
}
"""Name → price in cents."""
USER, PASSWORD = "ada", "enigma-1843"


def price(cents: int) -> str:
    return f"€{cents // 100}.{cents % 100:02}"


@dataclass
class ShopState:
    basket: dict[str, int] = field(default_factory=dict[str, int])
    signed_in: str = ""
    user_typed: str = ""
    password_typed: str = ""
    sign_in_refused: bool = False
    terms_accepted: bool = False
    newsletter: str = ""
    orders: list[list[str]] = field(default_factory=list[list[str]])


class Shop(App[ShopState]):
    package: ClassVar[str] = "org.example.shop"
    label: ClassVar[str] = "Shop"

    def fresh(self) -> ShopState:
        return ShopState()

    def stopped(self) -> None:
        self.state.user_typed = self.state.password_typed = ""

    # -- pages

    def home(self) -> Window:
        count = sum(self.state.basket.values())
        basket = icon_button(f"Basket, {count} items", partial(self.open, self.basket), rid="basket")
        account = icon_button("Account", self.account, rid="account")
        rows = (
            item(name, partial(self.show, name), summary=price(cents), rid="product")
            for name, cents in PRODUCTS.items()
        )
        return page(bar("Shop", account, basket), recycler(rows, rid="products"), activity=".CatalogActivity")

    def product(self, name: str) -> Window:
        return page(
            bar(name, up=self.close),
            Widget(cls="android.widget.ImageView", desc=f"Photo of {name}", rid="photo", look="icon", height=160),
            text(price(PRODUCTS[name]), rid="price", look="title", height=36),
            text("Made for phones that are not there. Ships in two days.", rid="description"),
            space(12),
            button("Add to basket", partial(self.add, name), rid="add"),
            space(8),
            button("Returns and terms", partial(self.open, self.terms), rid="terms"),
            activity=".ProductActivity",
        )

    def basket(self) -> Window:
        lines = [
            row(
                column(text(name, height=22), text(f"{count} × {price(PRODUCTS[name])}", look="small", height=18)),
                button("Remove", partial(self.remove, name), rid="remove", width=96),
                height=60,
                look="card",
            )
            for name, count in self.state.basket.items()
        ]
        total = sum(PRODUCTS[name] * count for name, count in self.state.basket.items())
        empty = [] if lines else [text("Your basket is empty.", rid="empty", height=48)]
        return page(
            bar("Basket", up=self.close),
            recycler([*lines, *empty], rid="basket_lines"),
            text(f"Total {price(total)}", rid="total", look="title", height=36),
            button("Check out", self.check_out, rid="check_out", enabled=bool(lines)),
            activity=".BasketActivity",
        )

    def sign_in(self) -> Window:
        state = self.state
        trouble = [text("User name or password is wrong", rid="error", look="small")] if state.sign_in_refused else []
        return page(
            bar("Sign in", up=self.close),
            space(16),
            entry("User name", state.user_typed, self.type_user, rid="user"),
            space(8),
            entry(
                "Password", state.password_typed, self.type_password, rid="password", password=True, on_enter=self.enter
            ),
            *trouble,
            space(12),
            button("Sign in", self.enter, rid="sign_in", enabled=bool(state.user_typed and state.password_typed)),
            activity=".SignInActivity",
        )

    def paying(self) -> Window:
        return sheet(
            "Pay with",
            item("Card ending in 1815", partial(self.order, "card"), rid="pay_card"),
            item("Invoice", partial(self.order, "invoice"), rid="pay_invoice"),
            activity=".BasketActivity",
            cancel=self.close,
        )

    def terms(self) -> Window:
        state = self.state
        clauses = [
            web.paragraph(f"§{n} Goods from this shop exist in this shop only. Returns within {n * 7} days are free.")
            for n in range(1, 31)
        ]
        site = web.web_page(
            "Terms of the shop",
            (
                web.heading("Terms and returns"),
                web.paragraph("Shown by a browser inside the app."),
                web.link("Privacy", partial(self.open, self.privacy), rid="#privacy-link"),
                web.web_field("Your e-mail", state.newsletter, self.type_newsletter, rid="#email"),
                web.checkbox("I accept the terms", state.terms_accepted, self.accept, rid="#accept"),
                *clauses,
                web.web_button("Close", self.close, rid="#close"),
            ),
        )
        return page(bar("Terms", up=self.close), site, activity=".WebActivity")

    def privacy(self) -> Window:
        site = web.web_page(
            "Privacy",
            (web.heading("Privacy"), web.paragraph("Nothing is kept."), web.link("Back to the terms", self.close)),
        )
        return page(bar("Privacy", up=self.close), site, activity=".WebActivity")

    # -- what the user does

    def show(self, name: str) -> None:
        self.open(partial(self.product, name), "product")

    def add(self, name: str) -> None:
        self.state.basket[name] = self.state.basket.get(name, 0) + 1
        self.phone.toast("Added to the basket")

    def remove(self, name: str) -> None:
        self.state.basket.pop(name)

    def account(self) -> None:
        if self.state.signed_in:
            self.state.signed_in = ""
            self.phone.toast("Signed out")
        else:
            self.open(self.sign_in)

    def type_user(self, value: str) -> None:
        self.state.user_typed, self.state.sign_in_refused = value, False

    def type_password(self, value: str) -> None:
        self.state.password_typed, self.state.sign_in_refused = value, False

    def enter(self) -> None:
        if (self.state.user_typed.strip(), self.state.password_typed) != (USER, PASSWORD):
            self.state.sign_in_refused = True
            return
        self.state.signed_in, self.state.password_typed = USER, ""
        self.close()
        self.phone.toast(f"Hello {USER}")

    def check_out(self) -> None:
        self.open(self.paying if self.state.signed_in else self.sign_in)

    def order(self, how: str) -> None:
        self.state.orders.append([how, *self.state.basket])
        self.state.basket.clear()
        self.close(len(self.pages))
        self.phone.toast("Ordered")

    def accept(self) -> None:
        self.state.terms_accepted = not self.state.terms_accepted

    def type_newsletter(self, value: str) -> None:
        self.state.newsletter = value
