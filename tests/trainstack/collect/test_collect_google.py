"""Snapshots of Google Cloud projects: pages, errors and redaction."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from google.auth.exceptions import RefreshError
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.credentials import Credentials

from infra.clouds.gcp.api import HALF
from infra.clouds.gcp.login import LoggedOutError
from policies.evaluate import evaluate
from policies.rules import CATALOG
from policies.sources.live import snapshot
from policies.sources.live.records import account
from policies.sources.live.tables import tables
from policies.stack import Stack
from tests.trainstack.collect.project import ID, NUMBER, TIME, Cut, Project, Reply, denied, disabled, refused
from trainstack.collect.gcp.project import UNREADABLE, UnansweredError, collect
from trainstack.collect.redaction import redacted_asset

BUCKET, SINK = "storage.googleapis.com/Bucket", "logging.googleapis.com/LogSink"
FIRST = next(one.label for one in tables("gcp").queries.values() if one.service == "cloudasset")


@pytest.fixture
def project() -> Project:
    made = Project()
    for number in range(5):
        name = f"train-{number}"
        made.add(BUCKET, f"//storage.googleapis.com/{name}", {"name": name, "location": "US"})
    return made


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a collector would have waited before each further attempt."""
    found: list[float] = []
    # Its own clock: other threads of this process go on sleeping.
    clock = SimpleNamespace(sleep=found.append, time=time.time)
    monkeypatch.setattr("urllib3.util.retry.time", clock)
    return found


def busy(times: int, then: Any = None) -> Any:
    """An answer that comes after some refusals; what a project has, without another one."""
    refusals = iter(range(times))

    def answer(_: Mapping[str, Any]) -> Reply:
        if next(refusals, None) is not None:
            return refused(429, "RESOURCE_EXHAUSTED", "Quota exceeded")
        return 200, then or {"assets": [], "readTime": TIME}

    return answer


def test_a_snapshot_has_the_resources_of_a_project_from_all_pages(project: Project, tmp_path: Path) -> None:
    project.page = 2
    with project.served() as session:
        found = collect(ID, session)
    assert (found.cloud, found.account, found.taken) == ("gcp", ID, TIME)
    file = tmp_path / "snapshot.json"
    snapshot.write(found, file)
    assert file.stat().st_mode & 0o777 == 0o600
    reported = account(snapshot.read(file))
    assert [one.id for one in reported.resources] == [f"train-{number}" for number in range(5)]
    assert not reported.coverage.refused
    pages = [given.get("pageToken") for kind, given in project.asked if kind == BUCKET]
    assert pages == [None, "2", "4"]


def test_everything_is_of_one_moment(project: Project) -> None:
    """That of the first list: further pages of it are asked for as it was."""
    project.page = 2
    collect(ID, project.session())
    times = [given.get("readTime") for _, given in project.asked if "contentType" in given]
    assert times[0] is None
    first = [given for kind, given in project.asked if kind == FIRST]
    assert {one.get("readTime") for one in first} == {None}
    assert set(times[len(first) :]) == {TIME}


def test_what_is_refused_is_written_down_with_the_right_that_it_takes() -> None:
    """For every query without a parent; the project itself must be readable."""
    asked = [one for one in tables("gcp").queries.values() if not one.of and one.operation != "projects.get"]
    probe = Project()
    probe.above = [("folder", "12"), ("organization", "34")]
    collect(ID, probe.session())
    own = f"cloudresourcemanager/v1/projects/{ID}"
    found = collect(ID, Project({key: denied for key, _ in probe.asked if key != own}).session())
    for question in asked:
        (refusal,) = found.answers[question.name].refusals
        assert (refusal.code, refusal.action) == ("PERMISSION_DENIED", question.right)
    assert account(found).resources == []


def test_a_rule_that_needs_what_was_refused_is_undetermined(project: Project) -> None:
    """Only one type fails: buckets are reported."""
    project.said[SINK] = denied
    project.said["policies of iam.googleapis.com/ServiceAccount"] = denied
    reported = account(collect(ID, project.session()))
    assert len(reported.resources) == 5
    stack = Stack(reported.resources, None, reported.coverage)
    for rule, right in (("MLS-RES-02", "listResource"), ("MLS-IAM-04", "listIamPolicy")):
        (open_,) = [one for one in evaluate(stack, [CATALOG.rules[rule]]) if one.result == "undetermined"]
        assert f"cloudasset.assets.{right} " in open_.message and "PERMISSION_DENIED" in open_.message


def test_what_is_refused_above_a_project_leaves_the_project_known(project: Project) -> None:
    project.above = [("folder", "12"), ("organization", "34")]
    project.said["v3/organizations/34:getIamPolicy"] = denied
    refusal = account(collect(ID, project.session())).coverage.refusal
    assert "resourcemanager.organizations.getIamPolicy" in refusal("gcp:organizations/iAMBinding:IAMBinding")
    assert not refusal("gcp:projects/iAMBinding:IAMBinding")
    assert not refusal("gcp:folder/iAMBinding:IAMBinding")


def test_a_question_is_asked_again_where_it_was_throttled(project: Project, waits: list[float]) -> None:
    own = {"assets": [{"name": "//storage.googleapis.com/b", "resource": {"data": {"name": "b"}}}]}
    project.said[BUCKET] = busy(4, {**own, "readTime": TIME})
    with project.served(attempts=5) as session:
        found = collect(ID, session)
    assert [one.id for one in account(found).resources] == ["b"]
    assert len(waits) >= 3
    assert sorted(waits) == waits


def test_one_type_that_stays_throttled_leaves_others_known(project: Project, waits: list[float]) -> None:
    project.said[SINK] = busy(99)
    with project.served(attempts=3) as session:
        reported = account(collect(ID, session))
    assert len(reported.resources) == 5
    assert "(RESOURCE_EXHAUSTED)" in reported.coverage.refusal("gcp:logging/projectSink:ProjectSink")


def test_a_service_does_not_say_how_long_to_wait_without_end(project: Project) -> None:
    from infra.clouds.gcp.login import retries

    assert retries(7).retry_after_max == 60


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (disabled(NUMBER), "SERVICE_DISABLED"),
        (refused(429, "RESOURCE_EXHAUSTED"), "RESOURCE_EXHAUSTED"),
        ((503, b"<html>"), "UNAVAILABLE"),
        ((200, Cut(b'{"assets": []}')), UNREADABLE),
        ((200, b'{"assets": ['), UNREADABLE),
    ],
)
def test_a_project_that_answers_nothing_is_no_snapshot(reply: Reply, said: str, waits: list[float]) -> None:
    """At the first list: all others would end the same way, and each only after its waits."""
    own = Project({FIRST: lambda _: reply})
    with own.served() as session, pytest.raises(UnansweredError) as found:
        collect(ID, session)
    assert found.value.args[0].code == said
    assert [kind for kind, _ in own.asked][-1] == FIRST


_TRUNCATED = {"assetExceptions": [{"exceptionType": "TRUNCATION"}], "resource": {"data": {}}}


@pytest.mark.parametrize(
    ("half", "said"),
    [
        (b'{"assets": [{"name":', UNREADABLE),
        (b"[]", UNREADABLE),
        ({"assets": [{"name": "s"}]}, HALF),
        ({"assets": [{"name": "s", "resource": {}}]}, HALF),
        ({"assets": [{"name": "s", **_TRUNCATED}]}, HALF),
        ({"assets": [], "unreachable": ["locations/us-central1"]}, HALF),
        ({"assets": [], "nextPageToken": "again"}, HALF),
        (Cut(b'{"assets": []}'), UNREADABLE),
    ],
)
def test_half_an_answer_is_none(project: Project, half: Any, said: str) -> None:
    """Rules would take the silence of a part for absence: all of the type is open."""
    project.said[SINK] = lambda _: (200, half)
    with project.served() as session:
        reported = account(collect(ID, session))
    assert len(reported.resources) == 5
    assert f"({said})" in reported.coverage.refusal("gcp:logging/projectSink:ProjectSink")


def test_no_one_could_make_what_a_switched_off_service_makes(project: Project) -> None:
    """Where it is off in the project itself; in one that is billed for asking, that says nothing."""
    key, kind = f"parallelstore/v1/projects/{ID}/locations/-/instances", "gcp:parallelstore/instance:Instance"
    project.said[key] = lambda _: disabled(NUMBER, "parallelstore.googleapis.com")
    assert not account(collect(ID, project.session())).coverage.refusal(kind)
    project.said[key] = lambda _: disabled("999", "parallelstore.googleapis.com")
    assert "SERVICE_DISABLED" in account(collect(ID, project.session())).coverage.refusal(kind)


def test_a_project_without_billing_account_has_no_budget(project: Project) -> None:
    key = f"cloudbilling/v1/projects/{ID}/billingInfo"
    project.said[key] = lambda _: (200, {"billingAccountName": "", "billingEnabled": False})
    reported = account(collect(ID, project.session()))
    assert not reported.coverage.refusal("gcp:billing/budget:Budget")
    assert not [path for path, _ in project.asked if path.startswith("billingbudgets")]


def _expired(request: Any, scopes: Any) -> Any:
    """What renews credentials, and cannot."""
    raise RefreshError("invalid_grant: Token has been expired or revoked.")


def test_credentials_that_end_end_the_whole(project: Project) -> None:
    with pytest.raises(LoggedOutError, match="expired or revoked"):
        collect(ID, AuthorizedSession(Credentials(None, refresh_handler=_expired)))
    project.said[BUCKET] = lambda _: refused(401, "UNAUTHENTICATED", "Request had invalid credentials")
    with pytest.raises(LoggedOutError, match="invalid credentials"):
        collect(ID, project.session())


def test_secrets_are_not_kept(project: Project) -> None:
    disk = {"diskEncryptionKey": {"rawKey": "s3cr3t", "kmsKeyName": "projects/p/k"}}
    items = [{"key": "startup-script", "value": "join s3cr3t"}, {"key": "ssh-keys", "value": "s3cr3t"}]
    machine = {"name": "m", "labels": {"token-owner": "ml"}, "metadata": {"items": items}}
    cluster = {
        "name": "c", "location": "us-central1", "masterAuth": {"clientKey": "s3cr3t"},
        "nodePools": [{"config": {"metadata": {"kube-env": "s3cr3t"}}}],
    }  # fmt: skip
    database = {"name": "d", "rootPassword": "s3cr3t", "replicaConfiguration": {"password": "s3cr3t"}}
    run = {"template": {"containers": [{"env": [{"name": "API_KEY", "value": "s3cr3t"}]}]}}
    for kind, data in (
        ("compute.googleapis.com/Disk", disk),
        ("compute.googleapis.com/Instance", machine),
        ("container.googleapis.com/Cluster", cluster),
        ("sqladmin.googleapis.com/Instance", database),
    ):
        project.add(kind, f"//x/projects/{ID}/zones/z/things/t", data)
    found = collect(ID, project.session())
    assert "s3cr3t" not in snapshot.document(found)
    assert "token-owner" in snapshot.document(found)
    assert "startup-script" in snapshot.document(found)
    assert "s3cr3t" not in str(redacted_asset(run))
    assert all("SecretVersion" not in kind for kind, _ in project.asked)


def test_only_what_reads_is_asked(project: Project) -> None:
    verbs: set[tuple[str, str]] = set()

    def note(response: requests.Response, **_: Any) -> None:
        end = str(response.request.url).rpartition("/")[2].partition("?")[0]
        verbs.add((str(response.request.method), end))

    session = project.session()
    session.hooks["response"].append(note)
    collect(ID, session)
    posted = {end.partition(":")[2] for verb, end in verbs if verb != "GET"}
    assert posted == {"getIamPolicy", "getAncestry"}
