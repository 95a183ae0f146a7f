"""`trainstack preflight`, `up` and `versions` for a stack on Google Cloud, through the command line."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from infra import stackspec
from infra.catalog.gcp import facts
from infra.clouds.gcp import login as google_login
from infra.engine.golang import ROOT
from infra.errors import UserError
from infra.stackspec.document import Branch, Origin
from tests.trainstack.cli.command import checked, run_json
from tests.trainstack.preflight.gcp import quota_answers, test_billing, test_permissions, test_places
from tests.trainstack.preflight.gcp.asking import (
    ABSENT,
    BILLING,
    DENIED,
    ID,
    NUMBER,
    Google,
    aggregated,
    project,
    refused,
    spec,
)
from trainstack.bootstrap.gcp.checks import checks_of as checks_of_setup
from trainstack.bootstrap.setup import ClientSetup
from trainstack.cli.app import app
from trainstack.preflight import machine
from trainstack.preflight.deployment import require_ready
from trainstack.preflight.gcp import CHECKS, IDENTITY, JOB_CHECKS, apis
from trainstack.preflight.gcp.deployment import preflight_of
from trainstack.preflight.gcp.methods import METHODS
from trainstack.preflight.gcp.roles import rights, role
from trainstack.versions import newest

RUN = CliRunner()
CONFIG = "container.projects.locations.getServerConfig"
OFFERED = {
    "channels": [{"channel": "REGULAR", "defaultVersion": "1.36.1-gke.1", "validVersions": ["1.36.1-gke.1"]}]
}


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Google:
    """The project that the command asks."""
    made = Google()
    sessions: list[tuple[int, str | None]] = []

    def session(attempts: int, billed: str | None = None, impersonate: str | None = None) -> Any:
        assert impersonate is None
        sessions.append((attempts, billed))
        assert billed == ID  # requests count against the stack's project
        return made.session(), ""

    monkeypatch.setattr(google_login, "session", session)
    loaded = stackspec.LoadedSpec(spec(), Branch({}, Origin("f")))
    for name in ("load_file", "load_typed"):
        monkeypatch.setattr(stackspec, name, lambda *_: loaded)
    monkeypatch.setattr(machine, "_connects", lambda *_: False)
    return made


def preflight(*more: str, only: tuple[str, ...]) -> Any:
    skipped = [word for name in CHECKS if name not in only for word in ("--skip", name)]
    done: Any = RUN.invoke(app, ["preflight", "-s", "dev-gcp", *skipped, *more, "--format", "json"])
    if not isinstance(done.exception, UserError):
        document = checked(done.output)
        assert document["exit_code"] == done.exit_code
        done.answers = {row["check"]: row for row in document["answers"]}
    return done


def test_ready(google: Google) -> None:
    google.said |= test_places.zones().said
    done = preflight(only=("zones",))
    assert done.exit_code == 0, done.output
    identity = done.answers["identity"]
    assert identity["state"] == "ready" and ID in identity["text"] and NUMBER in identity["text"]


def test_something_is_missing(google: Google) -> None:
    google.said |= quota_answers.google({"h100_mega": 0}).said
    google.said["container.projects.locations.clusters.get"] = DENIED
    done = preflight(only=("quotas", "way-in"))
    assert done.exit_code == 1
    short = done.answers["quota h100_mega"]
    assert short["state"] == "short" and "--preferred-value=32" in short["fix"]
    assert done.answers["way-in"]["state"] == "unknown"


def test_a_check_that_could_not_be_made_is_no_pass(google: Google) -> None:
    google.said[CONFIG] = DENIED
    done = preflight(only=("kubernetes-version",))
    assert done.exit_code == 2 and "Allow container.clusters.list" in done.output


def test_credentials_that_expired(google: Google) -> None:
    google.said["cloudresourcemanager.projects.get"] = refused(401, "UNAUTHENTICATED", "expired")
    done = preflight(only=tuple(CHECKS))
    assert done.exit_code == 2
    identity = done.answers["identity"]
    assert identity["state"] == "unknown" and identity["fix"] == google_login.LOG_IN


def test_credentials_that_do_not_exist(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    def session(*_: Any) -> Any:
        raise google_login.LoggedOutError("Your default credentials were not found.")

    monkeypatch.setattr(google_login, "session", session)
    done = preflight(only=tuple(CHECKS))
    assert isinstance(done.exception, UserError) and "were not found" in done.exception.problems[0].rule
    assert not google.asked


def test_a_check_that_does_not_exist(google: Google) -> None:
    done: Any = RUN.invoke(app, ["preflight", "-s", "dev-gcp", "--skip", "principals"])
    assert isinstance(done.exception, UserError)
    assert "billing-account" in done.exception.problems[0].fix and not google.asked


def test_what_is_left_can_be_rehearsed(google: Google, tmp_path: Path) -> None:
    google.said |= quota_answers.google({"h100_mega": 8, "gpus_all_regions": 0}).said
    file = tmp_path / "project.yaml"
    done = preflight("--save", str(file), only=("quotas",))
    assert done.exit_code == 1 and str(file) in done.output
    saved = YAML(typ="safe").load(file.read_text())["quotas"]
    assert (saved["h100_mega"], saved["gpus_all_regions"]) == (8, 0) and set(saved) <= set(facts.quotas)


def before_up(google: Google) -> None:
    """A project in which the stack can be deployed."""
    google.said |= test_permissions.USABLE
    google.said |= billing_said()
    google.said |= {
        test_permissions.LIST: {
            "services": [
                {"name": f"projects/{NUMBER}/services/{name}", "state": "ENABLED"}
                for name in apis.wanted(project(Google()))
            ]
        },
        "orgpolicy.projects.policies.getEffectivePolicy": ABSENT,
        CONFIG: OFFERED,
        "container.projects.locations.clusters.get": ABSENT,
        "compute.disks.aggregatedList": aggregated("disks", {}),
    }


def billing_said() -> dict[str, Any]:
    about = {"billingAccountName": f"billingAccounts/{BILLING}", "billingEnabled": True}
    return {test_billing.INFO: about}


def refusals() -> set[str]:
    """The checks for which `up` does not begin; whether a program is installed here does not matter."""
    try:
        require_ready(preflight_of(spec()))
    except UserError as error:
        return {problem.path for problem in error.problems} - {"gke-auth-plugin"}
    return set()


def test_up_begins_where_it_can_finish(google: Google) -> None:
    before_up(google)
    assert refusals() == set()


def test_up_begins_nothing_where_it_could_not_finish(google: Google) -> None:
    before_up(google)
    google.said |= {
        test_billing.INFO: {"projectId": ID},
        test_permissions.LIST: {},
        "orgpolicy.projects.policies.getEffectivePolicy": {"spec": {"rules": [{"denyAll": True}]}},
        CONFIG: {"channels": [{"channel": "REGULAR", "validVersions": ["1.35.1-gke.1"]}]},
        "container.projects.locations.clusters.get": {"name": "dev-gcp", "endpoint": "203.0.113.9"},
    }
    assert refusals() == {
        *("billing", "apis", "organization-policies", "kubernetes-version", "leftovers", "way-in")
    }


def test_up_continues_after_denied_checks_and_not_without_an_identity(google: Google) -> None:
    google.said |= dict.fromkeys([name for name in METHODS if not name.startswith("cloudresource")], DENIED)
    assert refusals() == set()
    google.said["cloudresourcemanager.projects.get"] = refused(503, "UNAVAILABLE")
    assert refusals() == {IDENTITY}


def test_up_makes_checks_that_exist(google: Google) -> None:
    made = preflight_of(spec())
    assert set(made.before_up) <= set(made.checks) and made.identity not in made.checks
    assert made.place == f"project {ID}" and not google.asked


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest, "chart", lambda *_: "99.0.0")


@pytest.mark.usefixtures("charts")
def test_versions_of_the_channel_are_shown(google: Google) -> None:
    google.said[CONFIG] = {
        "channels": [{"channel": "REGULAR", "validVersions": ["1.37.2-gke.1", "1.36.9-gke.7"]}]
    }
    code, found = run_json("versions", "-s", "dev-gcp")
    assert code == 0
    first, *rest = found["pins"]
    assert (first["name"], first["pinned"], first["newest"]) == ("control plane", "1.36", "1.37")
    names = [row["name"] for row in rest]
    assert "kueue" in names and not [name for name in names if "aws" in name or "cluster-autoscaler" in name]


@pytest.mark.usefixtures("charts")
def test_a_version_that_is_not_offered_yet_is_an_error(google: Google) -> None:
    google.said[CONFIG] = {"channels": [{"channel": "REGULAR", "validVersions": ["1.35.9-gke.7"]}]}
    code, found = run_json("versions", "-s", "dev-gcp")
    assert code == 2 and "1.35, not 1.36" in found["pins"][0]["error"]


@pytest.mark.usefixtures("charts")
def test_versions_without_rights_or_credentials_are_no_pass(google: Google) -> None:
    google.said[CONFIG] = DENIED
    done = RUN.invoke(app, ["versions", "-s", "dev-gcp"])
    assert done.exit_code == 2 and "PERMISSION_DENIED: Permission denied" in done.output
    google.said[CONFIG] = refused(401, "UNAUTHENTICATED", "expired")
    done = RUN.invoke(app, ["versions", "-s", "dev-gcp"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("logged-out", "credentials"),)


def test_the_documented_roles_allow_every_request_and_nothing_else() -> None:
    text = (ROOT / "docs" / "reference" / "preflight.md").read_text()
    found = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert found == [role("project"), role("billing"), role("organization")]
    asked = {right for those in rights().values() for right in those}
    assert asked == {method.right for method in METHODS.values() if method.right} | {
        "serviceusage.services.use"
    }
    checks = ROOT / "trainstack" / "bootstrap" / "gcp" / "checks.py"
    sources = [*(ROOT / "trainstack" / "preflight" / "gcp").glob("*.py"), checks]
    code = "".join(path.read_text() for path in sources if path.name != "methods.py")
    named = {
        f"compute.{kind}.aggregatedList" for kind in ("machineTypes", "acceleratorTypes")
    }  # made from a kind
    assert {name for name in METHODS if f'"{name}"' not in code} <= named


def test_the_documented_checks_are_those_that_are_made() -> None:
    text = (ROOT / "docs" / "reference" / "preflight.md").read_text().partition("## Google Cloud")[2]
    parts = text.partition("## In the folder of a client")
    named = [
        {
            name
            for row in re.findall(r"^\| (`[^|]*`) \|", part, re.MULTILINE)
            for name in re.findall(r"`([^`]+)`", row)
        }
        for part in (parts[0], parts[2])
    ]
    of_setup = checks_of_setup(ClientSetup("acme", None, ""))
    assert named == [{IDENTITY, *CHECKS, *JOB_CHECKS}, {*of_setup}]
