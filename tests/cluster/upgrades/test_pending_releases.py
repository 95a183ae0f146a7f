"""Records of Helm on a real API server, as an interrupted operation leaves them, and as they change later."""

import datetime
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.charts import INSTALL_TIMEOUT_S
from infra.clouds.kubectl import ApiResponse, ClusterApi, connected
from infra.errors import UserError
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.waiting import eventually
from trainstack.cli.operations.jobs_in_use import JobsInUse
from trainstack.plans import releases

NAME = "some-chart"


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[ClusterApi]:
    with connected(None, plane.kubeconfig, writing=True) as found:
        yield found


@pytest.fixture
def stranger(plane: ControlPlane, tmp_path: Path) -> Iterator[ClusterApi]:
    """The connection of an identity without rights."""
    access = plane.access.kubeconfig()
    access["users"][0]["user"]["as"] = "stranger@example.com"
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(access))
    with connected(None, file, writing=True) as found:
        yield found


class Watched(ClusterApi):
    """A connection that runs something before each request, which may respond in place of the server."""

    def __init__(self, cluster: ClusterApi, before: Callable[[str, int], ApiResponse | None]) -> None:
        super().__init__(cluster.server, cluster._pool)
        self.before, self.count = before, 0

    def get(self, path: str, accept: str = "application/json", **query: str) -> ApiResponse:
        self.count += 1
        return self.before("GET", self.count) or super().get(path, accept, **query)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> ApiResponse:
        return self.before(method, self.count) or super().send(method, path, body)


def record(
    api: KubernetesApi, namespace: str, revision: int, status: str = "pending-upgrade", **labels: str
) -> str:
    """Create a record, and return its name."""
    name = f"sh.helm.release.v1.{NAME}.v{revision}"
    labels = {"owner": "helm", "name": NAME, "status": status, "version": str(revision), **labels}
    about = {"name": name, "namespace": namespace, "labels": labels}
    api.create({"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "helm.sh/release.v1"})
    return name


def becomes(api: KubernetesApi, namespace: str, name: str, status: str) -> None:
    api.patch("v1", "Secret", name, {"metadata": {"labels": {"status": status}}}, namespace)


def gone(cluster: ClusterApi, namespace: str) -> bool:
    return releases.HelmRecords(cluster, {(namespace, NAME)}).gone({(namespace, NAME)}) == [(namespace, NAME)]


def settled(cluster: ClusterApi, namespace: str, limit_s: float) -> None:
    found = releases.HelmRecords(cluster, {(namespace, NAME)}).pending()
    assert len(found) == 1
    releases.settle(cluster, found, lambda _: None, limit_s=limit_s, poll_s=0.05)


def test_secrets_without_a_name_and_those_of_other_namespaces_are_no_releases(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    record(api, namespace, 1)
    labels = {"owner": "helm", "status": "pending-upgrade"}
    about = {"name": "of-a-member", "namespace": "default", "labels": labels}
    api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {**about, "namespace": namespace}})
    try:
        api.create({"apiVersion": "v1", "kind": "Secret", "metadata": about})
        found = releases.HelmRecords(cluster, {(namespace, NAME), ("kube-system", NAME)}).pending()
    finally:
        api.delete("v1", "Secret", "of-a-member", "default")
    assert [(one.namespace, one.name, one.status) for one in found] == [(namespace, NAME, "pending-upgrade")]


def test_a_record_that_helm_ends_between_the_look_and_the_deletion_stays(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    name = record(api, namespace, 2)

    def before(method: str, _: int) -> None:
        if method == "DELETE":
            becomes(api, namespace, name, "deployed")

    settled(Watched(cluster, before), namespace, limit_s=0)
    assert api.get("v1", "Secret", name, namespace)["metadata"]["labels"]["status"] == "deployed"


def test_a_record_of_the_same_name_that_is_made_anew_is_not_deleted_by_a_look_at_the_old_one(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    name = record(api, namespace, 2)

    def before(method: str, _: int) -> None:
        if method == "DELETE":
            api.delete("v1", "Secret", name, namespace)
            eventually(lambda: api.find("v1", "Secret", name, namespace) is None)
            record(api, namespace, 2, "deployed")

    settled(Watched(cluster, before), namespace, limit_s=0)
    assert api.find("v1", "Secret", name, namespace)


def test_a_server_that_does_not_respond_settles_nothing(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    name = record(api, namespace, 2)
    failed = [ApiResponse(0, {"reason": "ReadTimeoutError"}), ApiResponse(503), ApiResponse(200, {})]
    away = Watched(cluster, lambda _, count: failed[count % 3] if count > 1 else None)
    with pytest.raises(UserError) as caught:
        settled(away, namespace, limit_s=0.2)
    assert [code for code, _ in caught.value.codes] == ["release-is-pending"]
    assert api.find("v1", "Secret", name, namespace)

    def before(_: str, count: int) -> ApiResponse | None:
        if count == 6:
            becomes(api, namespace, name, "deployed")
        return failed[count % 3] if 1 < count < 6 else None

    # It is back before the limit: the outcome is there, and counts.
    back = Watched(cluster, before)
    settled(back, namespace, limit_s=3600)
    assert back.count > 6 and api.find("v1", "Secret", name, namespace)


@pytest.mark.parametrize("install", [True, False])
def test_a_deployer_who_may_not_read_records_gets_the_command_of_helm_at_once(
    cluster: ClusterApi, stranger: ClusterApi, api: KubernetesApi, namespace: str, install: bool
) -> None:
    name = record(api, namespace, 1, "pending-install" if install else "pending-upgrade")
    assert releases.HelmRecords(stranger, {(namespace, NAME)}).pending() == []
    found = releases.HelmRecords(cluster, {(namespace, NAME)}).pending()
    with pytest.raises(UserError) as caught:
        releases.settle(stranger, found, lambda _: None, limit_s=3600)
    (problem,) = caught.value.problems
    command = "uninstall" if install else "rollback"
    assert problem.code == "release-is-pending"
    assert f"helm {command} {NAME} --namespace {namespace}" in str(problem)
    assert api.find("v1", "Secret", name, namespace)


@pytest.mark.parametrize("hours", [-24, 24])
def test_the_limit_counts_by_the_clock_of_the_server(
    cluster: ClusterApi, api: KubernetesApi, namespace: str, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    wrong = time.time() + hours * 3600
    monkeypatch.setattr(time, "time", lambda: wrong)
    name = record(api, namespace, 2)
    settled(cluster, namespace, limit_s=0.5)
    assert api.find("v1", "Secret", name, namespace) is None
    name = record(api, namespace, 3)

    def before(method: str, count: int) -> None:
        assert method == "GET", "the record of an operation that runs was deleted"
        if count == 4:
            becomes(api, namespace, name, "deployed")

    settled(Watched(cluster, before), namespace, limit_s=3600)
    assert api.find("v1", "Secret", name, namespace)


def test_without_the_clock_of_the_server_the_limit_begins_with_the_first_look(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    """A proxy may remove the header."""
    name = record(api, namespace, 2)

    class Dateless(Watched):
        def get(self, path: str, accept: str = "application/json", **query: str) -> ApiResponse:
            return replace(super().get(path, accept, **query), date=None)

    def before(method: str, count: int) -> None:
        assert count < 1000, "it waits for ever"

    began = time.monotonic()
    settled(Dateless(cluster, before), namespace, limit_s=0.5)
    assert api.find("v1", "Secret", name, namespace) is None and time.monotonic() >= began + 0.5


def revisions(api: KubernetesApi, namespace: str) -> list[str]:
    found = api.list("v1", "Secret", namespace, labels=f"owner=helm,name={NAME}")
    return sorted(body["metadata"]["labels"]["version"] for body in found)


@pytest.mark.parametrize("in_state", [True, False])
def test_an_interrupted_uninstall_is_repeated_or_its_records_are_deleted(
    cluster: ClusterApi, api: KubernetesApi, namespace: str, in_state: bool
) -> None:
    record(api, namespace, 1, "superseded")
    record(api, namespace, 2, "uninstalling")
    releases_of_stack = {(namespace, NAME)}
    found = releases.HelmRecords(cluster, releases_of_stack).pending()
    left = releases.settle(
        cluster, found, lambda _: None, limit_s=0, state=releases_of_stack if in_state else (), poll_s=0.05
    )
    # In the state: the engine lets Helm complete it, which needs the records. Else nothing else would.
    assert left == ([(namespace, NAME)] if in_state else [])
    assert revisions(api, namespace) == (["1", "2"] if in_state else [])
    assert gone(cluster, namespace) == (not in_state)


def test_an_uninstall_that_began_just_now_is_waited_for_however_old_the_release_is(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    name = record(api, namespace, 1, "deployed")
    # The clock of the server has whole seconds: the release is older than the limit below.
    born = api.get("v1", "Secret", name, namespace)["metadata"]["creationTimestamp"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clock", "namespace": namespace}}

    def later() -> bool:
        now = api.create(other, dry_run=True)["metadata"]["creationTimestamp"]
        age = datetime.datetime.fromisoformat(now) - datetime.datetime.fromisoformat(born)
        return age > datetime.timedelta(seconds=3)

    eventually(later, "the release is older than the limit")
    becomes(api, namespace, name, "uninstalling")

    def before(method: str, count: int) -> None:
        assert method == "GET", "the record of an uninstall that runs was deleted"
        if count == 3:
            api.delete("v1", "Secret", name, namespace)

    settled(Watched(cluster, before), namespace, limit_s=3)
    assert gone(cluster, namespace)


def test_releases_in_namespaces_that_cannot_be_read_are_not_gone(
    stranger: ClusterApi, namespace: str
) -> None:
    assert not gone(stranger, namespace)


def test_the_rollback_after_an_upgrade_that_failed_is_waited_for(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    name, after = record(api, namespace, 2), ""

    def before(_: str, count: int) -> None:
        nonlocal after
        if count == 3:
            becomes(api, namespace, name, "failed")
            after = record(api, namespace, 3, "pending-rollback")
        if count == 6:
            becomes(api, namespace, after, "deployed")

    watched = Watched(cluster, before)
    settled(watched, namespace, limit_s=3600)
    assert watched.count > 6 and releases.HelmRecords(cluster, {(namespace, NAME)}).pending() == []
    assert api.find("v1", "Secret", after, namespace)


class Later(Watched):
    """A connection whose server has a later clock: by these seconds at each request."""

    late: Iterator[int]

    def get(self, path: str, accept: str = "application/json", **query: str) -> ApiResponse:
        answer = super().get(path, accept, **query)
        if not answer.date or "limit" in query:
            return answer
        return replace(answer, date=answer.date + datetime.timedelta(seconds=next(self.late)))


def test_up_deletes_no_record_of_a_helm_that_may_still_run(
    cluster: ClusterApi, api: KubernetesApi, namespace: str
) -> None:
    name = record(api, namespace, 2)
    # Each step of Helm may use the whole timeout.
    seconds = iter([INSTALL_TIMEOUT_S + 1, 2 * INSTALL_TIMEOUT_S - 60, 3 * INSTALL_TIMEOUT_S])
    later = Later(cluster, lambda *_: None)
    later.late = seconds
    JobsInUse(later, pending=releases.HelmRecords(cluster, {(namespace, NAME)}).pending()).drain(now=False)
    assert not [*seconds] and api.find("v1", "Secret", name, namespace) is None
