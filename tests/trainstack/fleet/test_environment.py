"""The environment of a client's command: settings of the machine, and credentials of this client alone."""

import configparser
import dataclasses
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import google.auth
import pytest
from google.auth import impersonated_credentials

from infra.errors import UserError
from tests.trainstack.fleet.agency import ACCOUNT, add_client, write_fleet
from trainstack.bootstrap.aws.account import ClientAccount
from trainstack.bootstrap.gcp.project import GcpProject
from trainstack.fleet import deployers
from trainstack.fleet.environment import prepare
from trainstack.fleet.fleet_file import AwsCredentials, Client, GoogleCredentials, load
from trainstack.fleet.stacks import FleetStack, stacks_of

STATE = "file:///srv/state"
ROLE = "arn:aws:iam::111122223333:role/deployer"
CONFIG = """
[profile agency]
sso_session = corp
region = eu-west-1
[sso-session corp]
sso_start_url = https://corp.awsapps.com/start
sso_region = eu-west-1
[profile other]
role_arn = arn:aws:iam::999999999999:role/canary
source_profile = agency
[profile chained]
role_arn = arn:aws:iam::444455556666:role/hub
source_profile = keys
"""
KEYS = """
[keys]
aws_access_key_id = AKIAKEYS
aws_secret_access_key = s
[canary]
aws_access_key_id = AKIACANARY
"""
USER = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}


class Agency:
    """A fleet of one client, and the home of the agency."""

    def __init__(self, base: Path) -> None:
        self.base, self.made = base, 0
        self.home = base / "home"
        (self.home / ".aws").mkdir(parents=True)
        (self.home / ".aws" / "config").write_text(CONFIG)
        (self.home / ".aws" / "credentials").write_text(KEYS)
        (self.home / ".pulumi" / "plugins").mkdir(parents=True)
        (self.home / ".pulumi" / "credentials.json").write_text("canary")
        self.shell = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "OTHER": "canary",
            "LANG": "C.UTF-8",
        }
        add_client(base, "acme")

    def variables(self, **entry: Any) -> dict[str, str]:
        """The variables; files stay for the test."""
        self.made += 1
        backend = entry.pop("backend", {"url": STATE})
        path = write_fleet(self.base, [{"name": "acme", "backend": backend, **entry}])
        (stack,) = stacks_of(load(path), self.base, rehearse=False).stacks
        return prepare(stack, self.base / f"work{self.made}", self.base, self.shell, rehearse=False)

    def refused(self, **entry: Any) -> list[tuple[str, str]]:
        with pytest.raises(UserError) as raised:
            self.variables(**entry)
        assert "CANARY" not in str(raised.value)
        return list(raised.value.codes)


@pytest.fixture
def agency(tmp_path: Path) -> Agency:
    return Agency(tmp_path)


def config(variables: dict[str, str]) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    parser.read(variables["AWS_CONFIG_FILE"])
    return parser


def test_only_settings_of_the_machine_come_from_the_shell(agency: Agency) -> None:
    found = agency.variables()
    assert {name for name in found if name in agency.shell} == {"HOME", "PATH", "LANG"}
    assert found["HOME"] != agency.shell["HOME"]
    assert found["PULUMI_BACKEND_URL"] == STATE
    assert "canary" not in json.dumps(found)
    assert sorted(one.name for one in Path(found["PULUMI_HOME"]).iterdir()) == ["plugins"]
    assert {"AWS_EC2_METADATA_DISABLED", "NO_GCE_CHECK"} <= found.keys(), "no login of the machine"


def test_a_profile_comes_with_what_it_names_and_nothing_else(
    agency: Agency, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = agency.variables(credentials={"aws": {"profile": "agency"}})
    assert config(found).sections() == ["profile agency", "sso-session corp"]
    assert "canary" not in Path(found["AWS_CONFIG_FILE"]).read_text()
    for name in ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "HOME"):
        monkeypatch.setenv(name, found[name])
    assert boto3.Session().region_name == "eu-west-1"


def test_a_role_is_assumed_with_its_external_id(agency: Agency) -> None:
    login = {"role_arn": ROLE, "external_id": "x-7", "profile": "chained"}
    found = agency.variables(credentials={"aws": login})
    written = config(found)
    assert dict(written["profile fleet"]) == {
        "role_arn": ROLE,
        "role_session_name": "trainstack-fleet",
        "external_id": "x-7",
        "source_profile": "chained",
    }
    assert written.sections() == ["profile chained", "profile keys", "profile fleet"]
    assert found["AWS_PROFILE"] == "fleet"
    assert "CANARY" not in Path(found["AWS_CONFIG_FILE"]).read_text()
    assert not (Path(found["AWS_CONFIG_FILE"]).stat().st_mode & 0o077)


@pytest.mark.parametrize(
    ("shell", "how"),
    [
        (
            {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"},
            "aws_session_token",
        ),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": ROLE}, "web_identity_token_file"),
    ],
)
def test_a_role_is_assumed_with_the_login_of_the_shell(
    agency: Agency, shell: dict[str, str], how: str
) -> None:
    agency.shell |= shell
    found = agency.variables(credentials={"aws": {"role_arn": ROLE}})
    assert how in config(found)["profile fleet-source"]
    assert not shell.keys() & found.keys(), "variables would come before the profile"


def test_google_credentials_impersonate_the_service_account(
    agency: Agency, monkeypatch: pytest.MonkeyPatch
) -> None:
    (agency.base / "user.json").write_text(json.dumps(USER))
    account = "deployer@acme-ml.iam.gserviceaccount.com"
    login = {"credentials_file": "user.json", "service_account": account}
    found = agency.variables(credentials={"google": login})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", found["GOOGLE_APPLICATION_CREDENTIALS"])
    made, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    assert isinstance(made, impersonated_credentials.Credentials)
    assert made.service_account_email == account
    federated = {"type": "external_account", "audience": "a", "credential_source": {"file": "/token"}}
    (agency.base / "user.json").write_text(json.dumps(federated))
    again = agency.variables(credentials={"google": login})
    written = json.loads(Path(again["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())
    assert account in written["service_account_impersonation_url"]
    assert written["credential_source"] == federated["credential_source"]


def test_a_passphrase_is_read_in_the_environment_of_the_agency(agency: Agency) -> None:
    code = "import os; print(os.environ['OTHER'] + '-pass')"
    source = {"command": [sys.executable, "-c", code]}
    found = agency.variables(backend={"url": STATE, "passphrase": source})
    path = Path(found["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert path.read_text() == "canary-pass"
    assert not (path.stat().st_mode & 0o077)
    assert "canary" not in json.dumps(found)


def test_credentials_that_cannot_be_used_are_named(agency: Agency) -> None:
    unusable = "credentials-unusable"
    assert agency.refused(credentials={"aws": {"profile": "gone"}}) == [(unusable, "credentials.aws.profile")]
    assert agency.refused(credentials={"google": {}})[0][0] == unusable
    for source in (
        {"file": "gone"},
        {"command": ["program-that-does-not-exist"]},
        {"command": [sys.executable, "-c", "print('CANARY'); raise SystemExit(3)"]},
        {"command": [sys.executable, "-c", ""]},
    ):
        found = agency.refused(backend={"url": STATE, "passphrase": source})
        assert found == [(unusable, "acme.backend.passphrase")]
    assert agency.refused(variables={"AWS_PROFILE": "x"}) == [
        ("variable-reserved", "acme.variables.AWS_PROFILE")
    ]
    assert agency.refused(backend=None) == [("backend-missing", "acme.backend")]


def test_a_backend_needs_a_login_of_its_cloud(agency: Agency) -> None:
    aws = {"aws": {"profile": "agency"}}
    google = {"google": {"service_account": "deployer-{stack}@acme-ml.iam.gserviceaccount.com"}}
    where = [("backend-without-login", "acme.backend.url")]
    assert agency.refused(backend={"url": "s3://state"}) == where
    assert agency.refused(backend={"url": "s3://state"}, credentials=google) == where
    assert agency.refused(backend={"url": "gs://state"}, credentials=aws) == where
    assert agency.variables(backend={"url": "s3://state"}, credentials=aws)["AWS_PROFILE"] == "agency"
    where = [("backend-without-login", "acme.backend.access_token")]
    cloud = {"url": "https://api.pulumi.com"}
    assert agency.refused(backend=cloud, credentials=aws) == where
    token = {"command": [sys.executable, "-c", "print('pul-1')"]}
    variables = agency.variables(backend={**cloud, "access_token": token})
    assert variables["PULUMI_ACCESS_TOKEN"] == "pul-1"


NAMES = ("acme-dev", "a-client-with-a-very-long-name-and-a-longer-one-still-production-2")


@pytest.mark.parametrize("name", NAMES)
def test_deployers_are_those_that_bootstrap_makes(name: str) -> None:
    site: Any = SimpleNamespace(name=ACCOUNT, region="r", specs=())
    project: Any = SimpleNamespace(name="acme-ml", region="r", specs=())
    trust: Any = None
    stack = FleetStack(Client(name="acme"), Path(), "acme", name, "aws", "r", "dev", ACCOUNT, None)
    role = deployers.aws(AwsCredentials(role_arn=f"{ROLE}-{{stack}}"), stack)
    made = ClientAccount("acme", site, "acme", trust).role(name)
    assert role.role_arn == f"arn:aws:iam::111122223333:role/{made}"
    of_project = dataclasses.replace(stack, cloud="gcp", account="acme-ml")
    address = "deployer-{stack}@acme-ml.iam.gserviceaccount.com"
    email = deployers.google(GoogleCredentials(service_account=address), of_project).service_account
    of_google = GcpProject("acme", project, "acme", trust)
    assert email == of_google.email(of_google.deployer(name))


def test_the_name_of_a_stack_cannot_leave_the_account_of_its_client() -> None:
    stack = FleetStack(Client(name="acme"), Path(), "acme", "x:role/y@z/../\n[b]", "aws", "r", "", "", None)
    role = deployers.aws(AwsCredentials(role_arn=f"{ROLE}-{{stack}}"), stack).role_arn
    assert role == f"{ROLE}-x-role-y-z-b"
    nameless = dataclasses.replace(stack, name="__")
    with pytest.raises(UserError):
        deployers.aws(AwsCredentials(role_arn=f"{ROLE}-{{stack}}"), nameless)


def test_a_role_is_that_of_the_stack(agency: Agency) -> None:
    login = {"role_arn": f"{ROLE}-{{stack}}", "profile": "chained"}
    found = config(agency.variables(credentials={"aws": login}))
    assert found["profile fleet"]["role_arn"] == f"{ROLE}-acme-dev"
