"""The drain before a change, with the real Kueue: what it stops, and what goes on when it is resumed."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pulumi.automation import OutputValue

from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import TeamArgs
from infra.clouds.kubectl import ClusterApi, connected
from infra.engine.stack import EngineStack
from infra.naming import flavor_name
from infra.outputs.cluster import KEY, PLAIN_KEYS
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.waiting import eventually
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli.operations.jobs_in_use import UNKNOWN, jobs_in_use
from trainstack.plans.draining import Draining, resume
from trainstack.plans.jobs import ENDS, Removal, effects
from trainstack.plans.leftovers import release_foreign
from trainstack.queues.reading import read

L4, CPU = flavor("drained", "g6.2xlarge", 2), flavor("stays", "g6.4xlarge", 2, gpus=0)
RBAC = "rbac.authorization.k8s.io"
TYPES = {"drained": "g6.2xlarge", "stays": "g6.4xlarge"}


@pytest.fixture
def lab(api: KubernetesApi) -> Iterator[Lab]:
    teams: list[TeamArgs] = [{"name": "Leaving", "weight": 1}, {"name": "Staying", "weight": 1}]
    with machines(api, [L4, CPU], TYPES), queues(api, [L4, CPU], teams) as made:
        yield made


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[ClusterApi]:
    with connected(None, plane.kubeconfig, writing=True) as found:
        yield found


@pytest.fixture
def deployer(api: KubernetesApi, plane: ControlPlane, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of an identity that has all rights but those on TrainJobs."""
    name = "all-but-trainjobs"
    about = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": name}}
    user = {"kind": "User", "name": "deployer@example.com", "apiGroup": RBAC}
    groups = ["", "apps", "batch", "kueue.x-k8s.io", "visibility.kueue.x-k8s.io", "apiextensions.k8s.io"]
    rules = [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]
    reference = {"kind": "ClusterRole", "name": name, "apiGroup": RBAC}
    api.create({**about, "kind": "ClusterRole", "rules": rules})
    api.create({**about, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [user]})
    access = plane.access.kubeconfig()
    access["users"][0]["user"]["as"] = user["name"]
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(access))
    yield file
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        api.delete(f"{RBAC}/v1", kind, name)


def _stopped(lab: Lab) -> set[str]:
    found = lab.api.list(API_VERSION, "ClusterQueue")
    return {one["metadata"]["name"] for one in found if one["spec"].get("stopPolicy", "None") != "None"}


def test_a_team_is_drained_and_goes_on_when_the_change_is_given_up(
    lab: Lab, cluster: ClusterApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainstack.plans.leftovers._CONTROLLER_S", 2.0)
    lab.submit("Leaving", "leaves")
    lab.submit("Staying", "stays")
    lab.nodes("leaves")
    before = lab.pods("stays") if lab.nodes("stays") else []
    namespace = lab.namespaces["Leaving"]
    held = {"name": "held", "namespace": namespace, "finalizers": ["example.com/unknown"]}
    lab.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    removed = Removal(frozenset({namespace}), frozenset({namespace}))
    found = [*effects(read(cluster, None), removed)]
    assert [one.job.name for one in found] == ["leaves"]
    reports: list[str] = []
    Draining(cluster, removed, now=False, report=reports.append).stop(found)
    assert lab.pods("leaves") == []
    assert lab.api.find("v1", "ConfigMap", "held", namespace) is None
    assert any("example.com/unknown" in line for line in reports)
    assert any(namespace in line for line in reports)
    assert _stopped(lab) == {namespace}
    assert [pod["metadata"]["uid"] for pod in lab.pods("stays")] == [pod["metadata"]["uid"] for pod in before]
    assert resume(cluster) == [namespace]
    assert _stopped(lab) == set()
    lab.runs("leaves")


def test_unknown_controllers_of_all_namespaces_have_one_time(
    lab: Lab, cluster: ClusterApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainstack.plans.leftovers._CONTROLLER_S", 1.0)
    namespaces = sorted(lab.namespaces.values())
    for namespace in namespaces:
        held = {"name": "held", "namespace": namespace, "finalizers": ["example.com/unknown"]}
        lab.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    reports: list[str] = []
    release_foreign(cluster, namespaces, reports.append, now=False)
    waiting, *released = reports
    assert all(namespace in waiting for namespace in namespaces) and len(released) == len(namespaces)
    assert not any(lab.api.find("v1", "ConfigMap", "held", namespace) for namespace in namespaces)


def test_ended_pods_stay_and_are_not_waited_for(lab: Lab, cluster: ClusterApi) -> None:
    namespace = lab.namespaces["Leaving"]
    lab.submit("Leaving", "ended", seconds=0)
    lab.submit("Leaving", "failed", seconds=0, notes={"trainstack.dev/exit-code": "1"})
    lab.submit("Leaving", "leaves")

    def ended() -> set[str]:
        found = [
            lab.api.list("v1", "Pod", namespace, fields=f"status.phase={phase}")
            for phase in ("Succeeded", "Failed")
        ]
        return {pod["metadata"]["uid"] for rows in found for pod in rows} if all(found) else set()

    kept = eventually(ended, "a pod of each kind has ended")
    lab.nodes("leaves")
    removed = Removal(frozenset({namespace}), frozenset({namespace}))
    # An ended pod that was waited for would be killed past this limit.
    drain = Draining(cluster, removed, now=False, report=lambda _: None, limit_s=0)
    drain.stop([*effects(read(cluster, None), removed)])

    def left() -> dict[str, bool]:
        found = [pod["metadata"] for pod in lab.api.list("v1", "Pod", namespace)]
        return {about["uid"]: "deletionTimestamp" in about for about in found}

    # A pod that was killed is there until the controller of its job has seen it.
    assert eventually(lambda: left() == dict.fromkeys(kept, False), "only the ended pods are left")


def test_jobs_are_drained_where_trainjobs_cannot_be_listed(
    lab: Lab, deployer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.submit("Leaving", "leaves", gpus=1)
    lab.nodes("leaves")
    exported = EXPORTED.model_copy(update={"kubeconfig": deployer.read_text()})
    outputs = {KEY: OutputValue(exported.model_dump(mode="json"), secret=False)}
    outputs |= {key: OutputValue(getattr(exported, key), secret=False) for key in PLAIN_KEYS}
    engine = cast(EngineStack, SimpleNamespace(outputs=lambda: outputs, resources=list))
    with jobs_in_use(engine, None, None) as jobs:
        assert [effect for effect, _ in jobs.lines()] == [ENDS, UNKNOWN]
        assert "Forbidden" in jobs.lines()[-1][1] and jobs.drains
        jobs.announce()
        jobs.drain(now=True)
        assert lab.pods("leaves") == []
        jobs.release()
    assert "Forbidden" in capsys.readouterr().out


def test_jobs_of_a_removed_pool_lose_their_place_on_it_and_count_no_failure(
    lab: Lab, cluster: ClusterApi
) -> None:
    lab.submit("Leaving", "gpus", gpus=1)
    lab.submit("Staying", "cpu")
    lab.nodes("gpus")
    lab.nodes("cpu")
    removed = Removal(flavors=frozenset({flavor_name("drained")}))
    found = [*effects(read(cluster, None), removed)]
    assert [one.job.name for one in found] == ["gpus"]
    Draining(cluster, removed, now=False, report=lambda _: None).stop(found)
    eventually(lambda: not lab.pods("gpus"), "its pods ended")
    eventually(lambda: not lab.admitted("gpus"), "Kueue has taken its quota")
    assert lab.admitted("cpu")
    assert not lab.job("gpus")["status"].get("failed")
    assert _stopped(lab) == {lab.namespaces["Leaving"]}
    resume(cluster)
    lab.runs("gpus")
