"""Where the database is comes from the environment, and what is secret in it stays there."""

from pathlib import Path

import pytest

from apex_bus.errors import SettingsError
from apex_decision_log.settings import database_url

URL = "postgresql://apex_writer:hunter2@db:5432/apex"


def test_the_url_is_taken_from_the_variable_or_from_the_file_that_it_names(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(f"{URL}\n")
    assert database_url({"DECISION_LOG_DATABASE_URL": URL}) == URL
    assert database_url({"DECISION_LOG_DATABASE_URL_FILE": str(secret)}) == URL


@pytest.mark.parametrize(
    ("environ", "named", "said"),
    [
        ({}, "DECISION_LOG_DATABASE_URL", "must be set"),
        ({"DECISION_LOG_DATABASE_URL": " "}, "DECISION_LOG_DATABASE_URL", "must be set"),
        ({"DECISION_LOG_DATABASE_URL": "mysql://u:hunter2@db/x"}, "DECISION_LOG_DATABASE_URL", "postgresql://"),
        ({"DECISION_LOG_DATABASE_URL": "postgresql://[hunter2"}, "DECISION_LOG_DATABASE_URL", "postgresql://"),
        (
            {"DECISION_LOG_DATABASE_URL_FILE": "/no/such"},
            "DECISION_LOG_DATABASE_URL_FILE",
            "cannot be read: No such file",
        ),
        (
            {"DECISION_LOG_DATABASE_URL": URL, "DECISION_LOG_DATABASE_URL_FILE": "/no/such"},
            "DECISION_LOG_DATABASE_URL",
            "one of them",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_variable_and_never_shown(environ: dict[str, str], named: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        database_url(environ)
    assert caught.value.variable == named
    assert "hunter2" not in str(caught.value)
