"""A fleet file is checked as a whole: every problem with its place, and no secret is repeated."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.errors import UserError
from trainstack.fleet import fleet_file

ROLE = ("string-pattern-mismatch", "clients[0].credentials.aws.role_arn")
GOOGLE_ACCOUNT = "clients[0].credentials.google.service_account"
VALID = """
format: 1
backend: {url: "s3://agency-state?region=eu-west-1"}
limits: {workers: 3, minutes: 10}
clients:
  - name: acme
    folder: clients/acme
    stacks: [acme-dev, acme-prod]
    backend:
      url: https://api.pulumi.com
      organization: acme
      access_token: {command: [op, read, "op://acme/pulumi"]}
    credentials:
      aws: {profile: agency, role_arn: "arn:aws:iam::111122223333:role/deployer-{stack}", external_id: x-1}
    tags: [canary, eu]
  - name: globex
    backend: {url: "file:///srv/state/globex", passphrase: {file: secrets/globex}}
    credentials: {google: {service_account: "deployer-{stack}@globex-ml.iam.gserviceaccount.com"}}
    variables: {HTTPS_PROXY: "http://proxy:3128"}
"""


def load(folder: Path, text: str) -> fleet_file.Fleet:
    path = folder / "fleet.yaml"
    path.write_text(text)
    return fleet_file.load(path)


def problems(folder: Path, text: str) -> list[Any]:
    with pytest.raises(UserError) as raised:
        load(folder, text)
    return list(raised.value.problems)


def test_a_fleet_file_names_clients_in_every_form(tmp_path: Path) -> None:
    fleet = load(tmp_path, VALID)
    assert [one.name for one in fleet.clients] == ["acme", "globex"]
    jsonschema.Draft202012Validator(fleet_file.schema()).validate(YAML(typ="safe").load(VALID))


def test_the_committed_schema_is_the_current_one() -> None:
    assert fleet_file.SCHEMA.read_text() == fleet_file.schema_text(), (
        "run: python -m trainstack.fleet.fleet_file"
    )


def client(text: str) -> str:
    return f"format: 1\nclients:\n  - name: acme\n    {text}\n"


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        ("", "fleet-file-not-mapping", "fleet.yaml"),
        ("format: 2\nclients: [{name: a}]", "literal-error", "format"),
        ("format: 1", "required-key-missing", "clients"),
        ("format: 1\nclients: []", "too-short", "clients"),
        ("format: 1\nclients: [{name: ../etc}]", "string-pattern-mismatch", "clients[0].name"),
        ("format: 1\nclients: [{name: a b}]", "string-pattern-mismatch", "clients[0].name"),
        (f"format: 1\nclients: [{{name: {'a' * 200}}}]", "string-pattern-mismatch", "clients[0].name"),
        (client("color: red"), "unknown-key", "clients[0].color"),
        (client("backend: {url: 'ftp://x'}"), "string-pattern-mismatch", "clients[0].backend.url"),
        (client("credentials: {aws: {external_id: ab}}"), "value-error", "clients[0].credentials.aws"),
        (client("credentials: {google: {service_account: x}}"), "string-pattern-mismatch", GOOGLE_ACCOUNT),
        (client("credentials: {aws: {role_arn: 'arn:aws:iam::111122223333:role/{client}'}}"), *ROLE),
        (client("credentials: {aws: {role_arn: 'arn:aws:iam::{account}:role/x'}}"), *ROLE),
        (client("tags: [Gold]"), "string-pattern-mismatch", "clients[0].tags[0]"),
        (client("stacks: []"), "too-short", "clients[0].stacks"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_path(tmp_path: Path, text: str, code: str, path: str) -> None:
    (found,) = problems(tmp_path, text)
    assert (found.code, found.path.removeprefix(f"{tmp_path}/")) == (code, path)
    assert found.rule
    assert found.fix


@pytest.mark.parametrize(
    "text",
    [
        "backend: {url: 's3://user:CANARY@bucket'}",
        "backend: {url: 'file:///s', passphrase: CANARY}",
        "backend: {url: 'file:///s', passphrase: {value: CANARY}}",
        "backend: {url: 'file:///s', access_token: CANARY}",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, text: str) -> None:
    found = problems(tmp_path, client(text))
    assert found
    assert "CANARY" not in repr(found)


def test_a_problem_names_the_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "format: 1\nclients:\n  - name: acme\n    folder: acme\n    tags: gold\n")
    assert found.origin.endswith("fleet.yaml:5")
