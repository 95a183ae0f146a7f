"""The password of MLflow's first user, and the configuration of its users."""

import configparser
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from agents.aws.mlflow_server.secret_store import AwsSecrets
from agents.mlflow_server import administrator as program

TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


class NoSuchValueError(Exception):
    """What boto3 calls ResourceNotFoundException."""


class ValueExistsError(Exception):
    """What boto3 calls ResourceExistsException."""


class Secrets:
    """Secrets Manager as its API reference describes it: one value per request token."""

    exceptions = SimpleNamespace(
        ResourceNotFoundException=NoSuchValueError, ResourceExistsException=ValueExistsError
    )

    def __init__(self, **values: dict[str, str]) -> None:
        self.current = {arn: (json.dumps(value), f"{arn}-1") for arn, value in values.items()}
        self.versions: dict[str, dict[str, str]] = {}
        self.blind_reads = 0  # how many reads find nothing yet

    def get_secret_value(self, **request: str) -> dict[str, str]:
        arn = request["SecretId"]
        if self.blind_reads > 0 or arn not in self.current:
            self.blind_reads -= 1
            raise NoSuchValueError
        value, version = self.current[arn]
        return {"SecretString": value, "VersionId": version}

    def put_secret_value(self, **request: str) -> None:
        token, value = request["ClientRequestToken"], request["SecretString"]
        assert 32 <= len(token) <= 64, "the API's own limits"
        known = self.versions.setdefault(request["SecretId"], {})
        if known.setdefault(token, value) != value:
            raise ValueExistsError
        self.current[request["SecretId"]] = (value, token)


@given(user=TEXT)
def test_any_user_of_the_database_survives_the_ini_file(user: str) -> None:
    url = make_url("postgresql+psycopg2://db:5432/mlflow?sslmode=require").set(username=user)
    parser = configparser.ConfigParser()
    parser.read_string(program.configuration(url.render_as_string()))
    assert make_url(parser["mlflow"]["database_uri"]) == url
    assert "admin_password" not in parser["mlflow"]


def test_new_users_see_nothing() -> None:
    parser = configparser.ConfigParser()
    parser.read_string(program.configuration("sqlite:///x.db"))
    assert parser["mlflow"]["default_permission"] == "NO_PERMISSIONS"


def test_first_start_stores_a_strong_password_and_later_ones_use_it() -> None:
    secrets = Secrets()
    first = program.password(AwsSecrets(secrets), "arn:admin")
    assert len(first) >= 40
    assert json.loads(secrets.current["arn:admin"][0]) == {"username": "admin", "password": first}
    assert program.password(AwsSecrets(secrets), "arn:admin") == first


def test_jobs_that_start_together_agree_on_the_password() -> None:
    secrets = Secrets()
    slow = Secrets()
    slow.current, slow.versions = secrets.current, secrets.versions
    slow.blind_reads = 1  # saw no value, and stores second
    fast = program.password(AwsSecrets(secrets), "arn:admin")
    assert program.password(AwsSecrets(slow), "arn:admin", lambda _: None) == fast


def test_a_new_value_may_take_a_moment_to_show() -> None:
    secrets = Secrets()
    secrets.blind_reads = 3
    waits: list[float] = []
    assert program.password(AwsSecrets(secrets), "arn:admin", waits.append)
    assert len(waits) == 2


def test_secret_without_a_password_is_an_error() -> None:
    secrets = Secrets(**{"arn:admin": {"username": "admin"}})
    with pytest.raises(ValueError, match=r"arn:admin lacks password"):
        program.password(AwsSecrets(secrets), "arn:admin")
