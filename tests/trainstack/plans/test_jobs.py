"""Jobs that a change of the queues ends, stops or leaves."""

import datetime
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from components.kubernetes.queueing.kueue_fields import COMPUTE_CLASS
from infra.engine.plan import PlannedStep
from infra.launchers import kubernetes
from infra.launchers.fabrics import on_nodes
from infra.launchers.gcp import gke
from infra.launchers.runplan import RunPlan
from trainstack.plans.jobs import (
    ENDS,
    RESUBMIT,
    STAYS,
    STOPS,
    Removal,
    effects,
    lost_networks,
    lost_runtimes,
    on_ending_nodes,
    removal,
    runtime_uses,
)
from trainstack.plans.leftovers import foreign, keeps
from trainstack.queues import objects
from trainstack.queues.state import ClusterQueue, Condition, Job, LocalQueue, State

NOW = datetime.datetime(2026, 7, 1, tzinfo=datetime.UTC)
RESERVED = {"QuotaReserved": Condition(true=True, reason="", message="", since=NOW)}
FINISHED = {"Finished": Condition(true=True, reason="", message="", since=NOW)}
OURS = "trainstack"


def _job(namespace: str, name: str, queue: str, pool: str = "", **more: Any) -> Job:
    held = {"conditions": RESERVED, "assigned": {(pool, "cpu"): Decimal(1)}} if pool else {}
    return Job(namespace, f"job-{name}", name, "default", queue, 0, NOW, (), **{**held, **more})


def _queue(name: str, *flavors: str, cohort: str = OURS) -> ClusterQueue:
    return ClusterQueue(name, cohort, flavors=flavors)


def _wanted(*queues: tuple[str, str, list[str]]) -> list[dict[str, Any]]:
    """Objects of Kueue of (ClusterQueue, namespace, flavors)."""
    bodies: list[dict[str, Any]] = []
    for name, namespace, flavors in queues:
        rows = [{"name": flavor} for flavor in flavors]
        bodies += [
            {
                "kind": "ClusterQueue",
                "metadata": {"name": name},
                "spec": {"resourceGroups": [{"flavors": rows}]},
            },
            {"kind": "LocalQueue", "metadata": {"name": "default", "namespace": namespace}},
            *({"kind": "ResourceFlavor", "metadata": {"name": flavor}} for flavor in flavors),
        ]
    return bodies


STATE = State(
    taken=NOW,
    cluster_queues={
        "team-a": _queue("team-a", "cpu", "l4"), "team-b": _queue("team-b", "cpu", "l4"),
        "other": _queue("other", "t4", cohort="elsewhere"),
    },
    local_queues=(
        LocalQueue("team-a", "default", "team-a"), LocalQueue("team-b", "default", "team-b"),
        LocalQueue("elsewhere", "default", "other"),
    ),
    jobs=(
        _job("team-a", "runs", "team-a", "l4"), _job("team-a", "waits", "team-a"),
        _job("team-a", "old", "team-a", conditions=FINISHED), _job("team-b", "cpu", "team-b", "cpu"),
        _job("elsewhere", "foreign", "other", "t4"),
    ),
)  # fmt: skip
BOTH = [("team-a", "team-a", ["cpu", "l4"]), ("team-b", "team-b", ["cpu", "l4"])]


def _effects(*wanted: tuple[str, str, list[str]]) -> dict[str, str]:
    bodies = _wanted(*wanted)
    return {one.job.name: one.effect for one in effects(STATE, removal(STATE, bodies), bodies)}


def test_an_unchanged_spec_removes_nothing() -> None:
    assert not removal(STATE, _wanted(*BOTH))
    assert _effects(*BOTH) == {}


def test_a_team_that_leaves_ends_its_jobs_and_no_spec_ends_all_of_the_stack_alone() -> None:
    assert _effects(BOTH[1]) == {"runs": ENDS, "waits": ENDS}
    assert _effects() == {"runs": ENDS, "waits": ENDS, "cpu": ENDS}
    every = frozenset({"team-a", "team-b"})
    assert removal(STATE, ()) == Removal(every, every, frozenset({"cpu", "l4"}))


def test_a_removed_pool_stops_what_runs_on_it_and_a_moved_one_does_not() -> None:
    assert _effects(("team-a", "team-a", ["cpu"]), ("team-b", "team-b", ["cpu"])) == {"runs": STOPS}
    moved = ("team-a--l4", "team-a", ["l4"])
    assert _effects(("team-a", "team-a", ["cpu"]), BOTH[1], moved) == {"runs": STAYS}


def test_a_removed_queue_stops_its_jobs_where_their_namespace_stays() -> None:
    assert _effects(("renamed", "team-a", ["cpu", "l4"]), BOTH[1]) == {"runs": STOPS, "waits": STOPS}


def _on_tcpxo(name: str, networks: list[str], *, by: str = "launcher", holding: bool = False) -> Job:
    """A job on A3 Mega as the state has it from its Workload."""
    plan = RunPlan(
        name=name, image="example.com/train@sha256:0", command=("train.py",), nodes=1, gpus_per_node=8, cpu=1,
        memory_gib=1, timeout_s=60,
    )  # fmt: skip
    (body,) = kubernetes.jobset(on_nodes(plan, gke.tcpxo(networks)))
    template = body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    if by == "annotation":
        template = {"metadata": template["metadata"], "spec": {"containers": []}}
    elif by == "requests":
        requests = {**gke.network_requests(networks), "cpu": "1"}
        template = {"spec": {"containers": [{"name": "run", "resources": {"requests": requests}}]}}
    admission = {"clusterQueue": "team-a", "podSetAssignments": []}
    rows = [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-07-01T00:00:00Z"}]
    workload = {
        "metadata": {
            "namespace": "team-a", "name": f"job-{name}", "creationTimestamp": "2026-07-01T00:00:00Z",
            "ownerReferences": [{"name": name, "uid": name}],
        },
        "spec": {"queueName": "default", "podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": {"admission": admission, "conditions": rows} if holding else {},
    }  # fmt: skip
    return objects.job(workload, {("team-a", "default"): "team-a"}, {})


@pytest.mark.parametrize("by", ["launcher", "annotation", "requests"])
def test_a_waiting_job_that_names_networks_of_before_must_be_submitted_again(by: str) -> None:
    network = "kubernetes:networking.gke.io/v1:Network"
    before, after = ["h100-vpc1", "h100-vpc2"], ["vpc1", "vpc2"]
    state = [{"type": network, "inputs": {"metadata": {"name": name}}} for name in [*before, "vpc1"]]
    lost = lost_networks(state, after)
    assert lost == set(before)
    jobs = (
        _on_tcpxo("old", before, by=by),
        _on_tcpxo("new", after, by=by),
        _on_tcpxo("running", before, by=by, holding=True),
    )
    found = effects(replace(STATE, jobs=jobs), Removal(), _wanted(*BOTH), lost)
    assert {one.job.name: one.effect for one in found} == {"old": RESUBMIT, "running": STAYS}


def test_a_job_that_waits_for_nodes_beside_the_pools_must_be_submitted_again() -> None:
    old, new = _on_tcpxo("old", ["vpc1"]), _on_tcpxo("new", ["vpc1"])
    beside = [replace(each, selector={COMPUTE_CLASS: "autopilot"}) for each in old.pod_sets]
    jobs = (replace(old, pod_sets=tuple(beside)), new)
    (found,) = effects(replace(STATE, jobs=jobs), Removal(), _wanted(*BOTH), ())
    assert (found.job.name, found.effect) == ("old", RESUBMIT)


def test_a_group_of_pods_continues_and_pods_with_too_little_cpu_must_be_submitted_again() -> None:
    large = _on_tcpxo("large", ["vpc1"])
    small = [replace(each, each={"cpu": Decimal("0.05")}) for each in large.pod_sets]
    jobs = (
        replace(large, name="group", grouped=True),
        replace(large, name="small", pod_sets=tuple(small)),
        replace(large, name="small-runs", pod_sets=tuple(small), conditions=RESERVED),
        large,
    )
    found = effects(replace(STATE, jobs=jobs), Removal(), _wanted(*BOTH), ())
    assert {one.job.name: one.effect for one in found} == {
        "group": STAYS, "small": RESUBMIT, "small-runs": STAYS,
    }  # fmt: skip


def test_a_workload_of_a_group_of_pods_is_known_as_one() -> None:
    annotations = {"kueue.x-k8s.io/is-group-workload": "true"}
    about = {"namespace": "a", "name": "b", "creationTimestamp": "2026-07-01T00:00:00Z"}
    spec: dict[str, Any] = {"podSets": []}
    assert objects.job({"metadata": {**about, "annotations": annotations}, "spec": spec}, {}, {}).grouped
    assert not objects.job({"metadata": about, "spec": spec}, {}, {}).grouped


def test_a_job_that_waits_with_another_version_of_its_daemon_must_be_submitted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = _on_tcpxo("old", ["vpc1"])
    repository = gke.TCPXO_PLUGIN.rpartition(":")[0]
    monkeypatch.setattr(gke, "TCPXO_PLUGIN", f"{repository}:v99")
    jobs = (waits, _on_tcpxo("new", ["vpc1"]))
    (found,) = effects(replace(STATE, jobs=jobs), Removal(), _wanted(*BOTH), ())
    assert (found.job.name, found.effect) == ("old", RESUBMIT)
    assert "v99" in str(found)


@pytest.mark.parametrize("interfaces", ["no JSON", "{}", '[1, {"network": 2}]', '"text"'])
def test_a_broken_annotation_names_no_networks(interfaces: str) -> None:
    template = {"metadata": {"annotations": {gke.INTERFACES: interfaces}}, "spec": {"containers": []}}
    workload = {
        "metadata": {"namespace": "a", "name": "b", "creationTimestamp": "2026-07-01T00:00:00Z"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
    }
    assert objects.job(workload, {}, {}).pod_sets[0].networks == frozenset()


@pytest.mark.parametrize("labels", [{"labels": {"trainstack.dev/pool": "l4"}},
                                    {"nodeConfig": {"labels": {"trainstack.dev/pool": "l4"}}}])  # fmt: skip
def test_jobs_on_nodes_that_end_are_found_by_the_pool_of_the_group(labels: dict[str, Any]) -> None:
    replaced = PlannedStep("replace", "aws:eks/nodeGroup:NodeGroup", "dev-l4-nodes", (), labels)
    found = on_ending_nodes(STATE, [replaced], ["dev-l4-nodes: every node (up to 8) ends"])
    assert [(one.job.name, one.effect) for one in found] == [("runs", STOPS)]
    assert not [*on_ending_nodes(STATE, [replaced], [])]


def test_train_jobs_that_keep_the_runtime_of_a_removed_pool_are_found_finished_ones_too() -> None:
    def train_job(namespace: str, name: str, runtime: str, ended: str = "", **more: str) -> dict[str, Any]:
        rows = [{"type": ended, "status": "True"}] if ended else []
        return {
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"runtimeRef": {"name": runtime, **more}}, "status": {"conditions": rows},
        }  # fmt: skip

    found = runtime_uses(
        [
            train_job("team-b", "old", "torch-l4", "Complete"), train_job("team-b", "runs", "torch-l4"),
            train_job("team-b", "own", "torch-l4", kind="TrainingRuntime"),
            train_job("team-b", "other", "torch-distributed"), train_job("team-b", "kept", "torch-a100"),
            train_job("team-a", "gone", "torch-l4"),
        ],
        Removal(namespaces=frozenset({"team-a"}), flavors=frozenset({"l4"})),
    )  # fmt: skip
    assert [(one.namespace, one.name, one.finished) for one in found] == [
        ("team-b", "old", True), ("team-b", "runs", False),
    ]  # fmt: skip


def test_the_runtime_of_a_machine_type_goes_with_the_second_last_pool() -> None:
    both = ("torch-distributed", "torch-h100", "torch-flex", "torch-a3-megagpu-8g")
    deployed = [
        {
            "type": "kubernetes:trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime",
            "inputs": {"metadata": {"name": name}},
        }
        for name in both
    ]
    one_left = {"torch-distributed", "torch-h100"}
    assert lost_runtimes([{"type": "pulumi:pulumi:Stack"}, *deployed], both) == set()
    assert lost_runtimes(deployed, one_left) == {"torch-flex", "torch-a3-megagpu-8g"}
    body: dict[str, Any] = {
        "metadata": {"namespace": "team-b", "name": "old"},
        "spec": {"runtimeRef": {"name": "torch-a3-megagpu-8g"}},
    }
    (use,) = runtime_uses([body], Removal(), lost_runtimes(deployed, one_left))
    assert use.runtime == "torch-a3-megagpu-8g"


def test_finalizers_of_controllers_that_run_are_not_foreign() -> None:
    known = [
        ("batch.kubernetes.io/job-tracking", "pods"),
        ("kueue.x-k8s.io/managed", "pods"),
        ("kueue.x-k8s.io/resource-in-use", "workloads"),
        ("kubernetes.io/pvc-protection", "persistentvolumeclaims"),
        ("service.kubernetes.io/load-balancer-cleanup", "services"),
        ("service.k8s.aws/resources", "services"),
        ("networking.gke.io/neg-finalizer", "servicenetworkendpointgroups"),
        *((one, kind) for one in ("foregroundDeletion", "orphan") for kind in ("configmaps", "pods")),
    ]
    assert not [one for one in known if foreign(*one)]


@pytest.mark.parametrize(
    ("finalizer", "kind"),
    [
        ("example.com/unknown", "configmaps"),
        # Names in the domains of such controllers that none of them handles, and on other kinds than theirs.
        ("kubernetes", "configmaps"),
        ("kubernetes.io/hold", "configmaps"),
        ("x.k8s.io/hold", "pods"),
        ("hold.amazonaws.com/x", "services"),
        ("kubernetes.io/pvc-protection", "configmaps"),
        ("kueue.x-k8s.io/resource-in-use", "pods"),
    ],
)
def test_other_finalizers_are_foreign(finalizer: str, kind: str) -> None:
    assert foreign(finalizer, kind)


def test_only_finalizers_of_operators_of_clouds_are_kept() -> None:
    kept = ["cnrm.cloud.google.com/finalizer", "finalizers.s3.services.k8s.aws/Bucket",
            "finalizer.managedresource.crossplane.io"]  # fmt: skip
    assert all(map(keeps, kept))
    assert not any(map(keeps, ["example.com/unknown", "evilcrossplane.io/x", "crossplane.io.example.com/x"]))
