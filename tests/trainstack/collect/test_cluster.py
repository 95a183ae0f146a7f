"""Snapshots of clusters: lists, errors and redaction."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from infra.clouds.kubectl import ApiResponse
from infra.errors import UserError
from policies.sources.live.snapshot import Snapshot
from trainstack.collect import kubernetes
from trainstack.collect.cluster_rights import role
from trainstack.collect.manifests import kept

HIDDEN = "hunter2"
JOBS = "/apis/batch/v1/jobs"


class Scripted:
    """A cluster that serves Jobs, and answers from a list."""

    server = "https://example.com"

    def __init__(self, *said: ApiResponse, **version: Any) -> None:
        self._said = list(said)
        self.asked: list[Mapping[str, str]] = []
        row = {"resource": "jobs", "responseKind": {"kind": "Job"}, "verbs": ["list"]}
        served = {"version": "v1", "resources": [row], **version}
        self._groups = [{"metadata": {"name": "batch"}, "versions": [served]}]

    def get(self, path: str, accept: str = "", **query: str) -> ApiResponse:
        if path in kubernetes.DISCOVERY:
            return ApiResponse(200, {"items": self._groups if path == "/apis" else []})
        assert path == JOBS
        self.asked.append(query)
        return self._said.pop(0)


def collected(cluster: Scripted, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    @contextmanager
    def connected(context: str | None) -> Iterator[Scripted]:
        yield cluster

    monkeypatch.setattr(kubernetes, "connected", connected)
    return kubernetes.collect()


def page(*names: str, token: str = "") -> ApiResponse:
    rows = [{"metadata": {"name": name}} for name in names]
    return ApiResponse(200, {"items": rows, "metadata": {"continue": token}})


EXPIRED = ApiResponse(410, {"reason": "Expired", "message": "too old"})


def test_pages_that_took_too_long_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Scripted(page("a", token="t"), EXPIRED, page("a", "b", "c"))
    answered = collected(cluster, monkeypatch).answers["batch.jobs"]
    assert [item.answer["metadata"]["name"] for item in answered.items] == ["a", "b", "c"]
    assert cluster.asked == [{"limit": "500"}, {"limit": "500", "continue": "t"}, {}]


def test_half_of_a_list_is_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in (ApiResponse(0, {"reason": "NoAnswer", "message": "reset"}), ApiResponse(500, {}), EXPIRED):
        cluster = Scripted(page("a", token="t"), said, said)
        answered = collected(cluster, monkeypatch).answers["batch.jobs"]
        assert not answered.items
        (refusal,) = answered.refusals
        assert refusal.action == "list jobs.batch"


@pytest.mark.parametrize(
    ("version", "said"),
    [({"version": "v2"}, "OtherVersion"), ({"freshness": "Stale", "resources": []}, "Stale")],
)
def test_what_is_served_otherwise_is_not_absent(
    version: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = collected(Scripted(**version), monkeypatch).answers["batch.jobs"]
    (refusal,) = answered.refusals
    assert str(refusal).startswith("list jobs.batch ") and f"({said})" in str(refusal)


def test_a_cluster_that_says_nothing_of_itself_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Scripted()
    cluster.get = lambda path, accept="", **query: ApiResponse(403, {"reason": "Forbidden"})  # type: ignore[method-assign]
    with pytest.raises(UserError, match="Forbidden"):
        collected(cluster, monkeypatch)


def variable(name: str, value: str) -> Any:
    spec = {"containers": [{"env": [{"name": name, "value": value}]}]}
    return kept({"metadata": {}, "spec": spec})["spec"]["containers"][0]["env"][0]["value"]


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("DB_PASSWORD", HIDDEN, "(redacted)"),
        ("DB_PASSWORD", "", ""),
        ("API_TOKEN", "12345678", "[secret]"),
        ("AWS_SECRET_ACCESS_KEY", f"/{HIDDEN}/x", "[secret]"),
        ("TOKEN_FILE", "/var/run/token", "/var/run/token"),
        ("ADMIN_SECRET", "arn:aws:secretsmanager:x", "arn:aws:secretsmanager:x"),
        ("TOKEN", "$(OTHER)", "$(OTHER)"),
        ("TOKEN", f"$(OTHER){HIDDEN}", "[secret]"),
        ("SECRET_URL", f"https://a:{HIDDEN}@b/", "://(redacted):(redacted)@"),
        ("DATABASE", f"pg://app:{HIDDEN}@db/x", "pg://app:(redacted)@db/x"),
        ("DATABASE", "pg://{user}:{password}@db/x", "pg://{user}:{password}@db/x"),
        ("Authorization", f"Bearer {HIDDEN}", "(redacted)"),
        ("EPOCHS", "3", "3"),
    ],
)
def test_what_stays_of_a_variable(name: str, value: str, left: str) -> None:
    assert variable(name, value) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"run --db-password={HIDDEN} -v", "run --db-password=(redacted) -v"),
        (f"export API_KEY='{HIDDEN}' && x", "export API_KEY=(redacted) && x"),
        (f'{{"token": "{HIDDEN}"}}', '{"token": (redacted)}'),
        (f'curl -H "Authorization: Bearer {HIDDEN}"', 'curl -H "Authorization: Bearer (redacted)"'),
        ("TOKEN=$OTHER run", "TOKEN=$OTHER run"),
        ('{"automountServiceAccountToken": false}', '{"automountServiceAccountToken": false}'),
        ("secretName: {a: b}", "secretName: {a: b}"),
    ],
)
def test_what_stays_of_a_command(text: str, left: str) -> None:
    found = kept({"metadata": {}, "spec": {"args": ["sh", "-c", text]}})
    assert found["spec"]["args"][2] == left


def test_an_option_and_its_value_may_be_two_words() -> None:
    words = ["x", "--token", HIDDEN, "--secret", "--password", "$WORD"]
    found = kept({"metadata": {}, "spec": {"args": words}})
    assert found["spec"]["args"] == ["x", "--token", "(redacted)", "--secret", "--password", "$WORD"]


def test_what_stays_of_an_object() -> None:
    managers = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}, {"manager": "kubectl"}]
    about = {
        "name": "a", "uid": "1", "resourceVersion": "7", "managedFields": managers,
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"a": HIDDEN}),
            "example.com/api-key": HIDDEN, "rbac.authorization.kubernetes.io/autoupdate": "true",
        },
    }  # fmt: skip
    found = kept({"kind": "ConfigMap", "metadata": about, "data": {"A": HIDDEN}, "binaryData": {"B": HIDDEN}})
    assert found == {
        "kind": "ConfigMap",
        "metadata": {
            "name": "a", "uid": "1", "managedFields": [{"manager": "kubectl"}],
            "annotations": {
                "example.com/api-key": "[secret]", "rbac.authorization.kubernetes.io/autoupdate": "true",
            },
        },
        "data": {"A": "[secret]"},
    }  # fmt: skip
    assert "status" not in kept({"metadata": {}, "status": {"phase": HIDDEN}})


def test_a_map_that_rules_read_is_kept() -> None:
    roles = {"mapRoles": "- groups: [system:masters]"}
    assert kept({"metadata": {"name": "aws-auth"}, "data": roles})["data"] == roles


def test_the_role_reads_and_reads_no_secrets() -> None:
    rules = role()["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "get"}
    assert [rule for rule in rules if "get" in rule["verbs"]] == [
        {"nonResourceURLs": ["/api", "/apis"], "verbs": ["get"]}
    ]
    named = {one for rule in rules for one in rule.get("resources", ())}
    assert len(named) > 40 and not any("secret" in one or "*" in one for one in named)
