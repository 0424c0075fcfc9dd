"""Settings: refused by the name of their variable, and a secret's value is never repeated."""

from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_bus.errors import SettingsError
from apex_bus.settings import BusSettings, bus_settings, load


class Lab(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    enabled: bool = False
    tokens: Annotated[int, msgspec.Meta(ge=1, le=10)] = 5
    seconds: Annotated[float, msgspec.Meta(gt=0, le=100)] = 1.5
    mode: Literal["fast", "slow"] = "fast"
    choice: Literal["a", "b"] | None = None
    api_key: Annotated[str, msgspec.Meta(min_length=8)] | None = None
    database_url: Annotated[str, msgspec.Meta(pattern="^postgresql://")] = "postgresql://db/apex"


def lab(**environ: str) -> Lab:
    return load(Lab, {"LAB_NAME": "n", **{f"LAB_{key}": value for key, value in environ.items()}}, prefix="LAB_")


def test_what_is_not_set_has_its_default_and_an_empty_variable_is_not_set() -> None:
    assert lab() == lab(ENABLED="", TOKENS="  ", CHOICE="", API_KEY="") == Lab(name="n")


def test_values_are_read_with_their_types_and_without_surrounding_blanks() -> None:
    found = lab(ENABLED=" Yes ", TOKENS="7", SECONDS="2.5", MODE="slow", CHOICE="b", API_KEY="12345678")
    assert found == Lab(name="n", enabled=True, tokens=7, seconds=2.5, mode="slow", choice="b", api_key="12345678")


@pytest.mark.parametrize("text", ["true", "1", "on", "YES", "false", "0", "off", "No"])
def test_truth_is_read_in_the_usual_words(text: str) -> None:
    assert lab(ENABLED=text).enabled is (text.lower() in ("true", "1", "on", "yes"))


def test_variable_that_must_be_set_and_is_not_is_named() -> None:
    for environ in ({}, {"LAB_NAME": " "}):
        with pytest.raises(SettingsError, match="LAB_NAME: must be set") as error:
            load(Lab, environ, prefix="LAB_")
        assert error.value.variable == "LAB_NAME"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("ENABLED", "perhaps"),
        ("TOKENS", "many"),
        ("TOKENS", "0"),
        ("TOKENS", "11"),
        ("TOKENS", "5.5"),
        ("SECONDS", "0"),
        ("SECONDS", "nan"),
        ("SECONDS", "inf"),
        ("SECONDS", "1e400"),
        ("MODE", "FAST"),
        ("CHOICE", "c"),
        ("API_KEY", "short"),
        ("DATABASE_URL", "mysql://u:p@h/d"),
    ],
)
def test_value_that_is_not_allowed_is_refused_by_the_name_of_its_variable(variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"^LAB_{variable}: ") as error:
        lab(**{variable: text})
    assert error.value.variable == f"LAB_{variable}"


@pytest.mark.parametrize(("variable", "listed"), [("MODE", "fast, slow"), ("CHOICE", "a, b")])
def test_choices_are_listed_when_another_value_is_set(variable: str, listed: str) -> None:
    with pytest.raises(SettingsError, match=f"choose one of {listed}"):
        lab(**{variable: "quick"})


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    api_key: Annotated[str, msgspec.Meta(max_length=1)] = ""
    password: int = 0
    auth_token: bool = False
    seed: Literal["x"] = "x"
    client_secret: float = 0
    database_url: Annotated[str, msgspec.Meta(pattern="^x$")] = "x"


@given(
    st.sampled_from([field.upper() for field in Secrets.__struct_fields__]),
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=12),
)
def test_value_of_a_secret_is_never_repeated(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}: ") as error:
        load(Secrets, {variable: value}, prefix="")
    shown: BaseException | None = error.value
    while shown is not None:
        assert value not in str(shown)
        shown = None if shown.__suppress_context__ else shown.__context__


def test_place_of_nats_has_a_default_and_its_own_prefix() -> None:
    assert bus_settings({}) == BusSettings(url="nats://127.0.0.1:4222")
    assert bus_settings({"APEX_NATS_SEED_FILE": "x.nk", "NATS_URL": "other"}).seed_file == "x.nk"
