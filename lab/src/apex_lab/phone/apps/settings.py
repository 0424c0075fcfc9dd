"""Settings: a long list, networks with toggles, Wi-Fi networks with a password dialog, display, about.

Owns: Wi-Fi, Bluetooth, airplane mode, the joined network, dark theme, and what was typed into the password field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from apex_lab.phone.app import App
from apex_lab.phone.widgets import Widget, bar, button, item, recycler, row, space, switch_item, text
from apex_lab.phone.widgets import field as entry
from apex_lab.phone.windows import Window, dialog, page

NETWORKS = {"Lab-5G": "", "Lab-Guest": "guest-pass", "Café Ünïcode": "mocha", "Printer-Direct": "1234"}
"""Network name → password; empty: open."""

PLACES = (
    "Network & internet", "Connected devices", "Apps", "Notifications", "Battery", "Storage", "Sound & vibration",
    "Display", "Wallpaper & style", "Accessibility", "Security & privacy", "Location", "Safety & emergency",
    "Passwords & accounts", "Digital Wellbeing", "Google", "System updates", "Languages & input", "Gestures",
    "Date & time", "Backup", "Users", "Printing", "Developer options", "Regulatory labels", "About phone",
)  # fmt: skip


@dataclass
class SettingsState:
    wifi: bool = False
    wifi_network: str = "Lab-5G"
    wifi_connecting_reads: int = 0
    bluetooth: bool = True
    airplane: bool = False
    dark_theme: bool = False
    password_typed: str = ""
    password_refused: bool = False
    known_networks: list[str] = field(default_factory=lambda: ["Lab-5G"])


class Settings(App[SettingsState]):
    package: ClassVar[str] = "com.android.settings"
    bundle: ClassVar[str] = "com.apple.Preferences"
    label: ClassVar[str] = "Settings"

    def fresh(self) -> SettingsState:
        return SettingsState()

    def stopped(self) -> None:
        self.state.password_typed = ""

    def read(self) -> None:
        if self.state.wifi_connecting_reads:
            self.state.wifi_connecting_reads -= 1

    # -- pages

    def home(self) -> Window:
        return page(
            bar("Settings"), recycler((self.place(name) for name in PLACES), rid="recycler_view"), activity=".Settings"
        )

    def place(self, name: str) -> Widget:
        match name:
            case "Network & internet":
                return item(name, partial(self.open, self.network), summary="Wi-Fi, Bluetooth, airplane mode")
            case "Display":
                return item(name, partial(self.open, self.display), summary="Dark theme, font size")
            case "About phone":
                return item(name, partial(self.open, self.about), summary="Simulated phone")
            case _:
                return item(name, partial(self.open, partial(self.nothing, name), "nothing"))

    def network(self) -> Window:
        state = self.state
        rows = (
            switch_item("Wi-Fi", state.wifi, self.toggle_wifi, summary=self.wifi_summary()),
            item("Wi-Fi networks", partial(self.open, self.networks), rid="wifi_networks"),
            switch_item(
                "Bluetooth", state.bluetooth, self.toggle_bluetooth, summary="On" if state.bluetooth else "Off"
            ),
            switch_item("Airplane mode", state.airplane, self.toggle_airplane),
        )
        return page(
            bar("Network & internet", up=self.close), recycler(rows, rid="network_settings"), activity=".SubSettings"
        )

    def wifi_summary(self) -> str:
        if not self.state.wifi:
            return "Off"
        if self.state.wifi_connecting_reads:
            return "Connecting…"
        return f"Connected to {self.state.wifi_network}" if self.state.wifi_network else "Not connected"

    def networks(self) -> Window:
        if self.state.wifi:
            rows = [self.network_row(name, secret) for name, secret in NETWORKS.items()]
        else:
            rows = [text("To see available networks, turn Wi-Fi on.", rid="android:id/empty", height=48)]
        return page(bar("Wi-Fi networks", up=self.close), recycler(rows, rid="network_list"), activity=".SubSettings")

    def network_row(self, name: str, secret: str) -> Widget:
        joined = name == self.state.wifi_network
        summary = "Connected" if joined else "Secured" if secret else "Open"
        return item(name, partial(self.choose_network, name), summary=summary)

    def password(self, name: str) -> Window:
        state = self.state
        trouble = [text("Wrong password", rid="error", look="small")] if state.password_refused else []
        return dialog(
            name,
            entry("Password", state.password_typed, self.type_password, rid="password", password=True, max_length=63),
            *trouble,
            space(12),
            row(
                button("Cancel", self.cancel_password, rid="android:id/button2"),
                button(
                    "Connect", partial(self.connect, name), rid="android:id/button1", enabled=bool(state.password_typed)
                ),
            ),
            activity=".wifi.WifiDialogActivity",
            cancel=self.cancel_password,
        )

    def display(self) -> Window:
        return page(
            bar("Display", up=self.close),
            switch_item("Dark theme", self.state.dark_theme, self.toggle_dark),
            switch_item("Adaptive brightness", False, self.toggle_dark, summary="Not on this phone", enabled=False),
            activity=".SubSettings",
        )

    def about(self) -> Window:
        return page(
            bar("About phone", up=self.close),
            item("Device name", summary="Simulated phone"),
            item("Model", summary="apex-lab, not a real device"),
            item("Android version", summary="14"),
            activity=".SubSettings",
        )

    def nothing(self, name: str) -> Window:
        return page(
            bar(name, up=self.close), space(40), text("Nothing to set here.", rid="empty"), activity=".SubSettings"
        )

    # -- what the user does

    def toggle_wifi(self) -> None:
        self.state.wifi = not self.state.wifi
        self.state.wifi_connecting_reads = self.phone.connect_reads() if self.state.wifi else 0

    def toggle_bluetooth(self) -> None:
        self.state.bluetooth = not self.state.bluetooth

    def toggle_airplane(self) -> None:
        self.state.airplane = not self.state.airplane
        if self.state.airplane:
            self.state.wifi = self.state.bluetooth = False

    def toggle_dark(self) -> None:
        self.state.dark_theme = not self.state.dark_theme

    def choose_network(self, name: str) -> None:
        if not NETWORKS[name] or name in self.state.known_networks:
            self.state.wifi_network = name
            return
        self.open(partial(self.password, name), "password")

    def type_password(self, value: str) -> None:
        self.state.password_typed, self.state.password_refused = value, False

    def cancel_password(self) -> None:
        self.type_password("")
        self.close()

    def connect(self, name: str) -> None:
        if self.state.password_typed != NETWORKS[name]:
            self.state.password_refused = True
            return
        self.state.wifi_network = name
        self.state.known_networks.append(name)
        self.cancel_password()
