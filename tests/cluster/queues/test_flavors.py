"""Nodes of jobs: none with GPUs for a job without, the cheapest that fits, spot before on-demand."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from components.kubernetes.queueing.kueue import QUEUE_NAME_LABEL
from components.kubernetes.queueing.quotas import GPU, FlavorArgs, TeamArgs
from components.kubernetes.training.trainer import runtimes
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.queues.lab import IMAGE, flavor, machines, queues
from tests.cluster.waiting import eventually, gone

TEAM: list[TeamArgs] = [{"name": "Applied ML", "weight": 1, "gpus": {"l4": 4, "a100": 0}}]
RESEARCH: list[TeamArgs] = [{"name": "Research", "weight": 1, "gpus": {"l4": 2, "a100": 8}}, *TEAM]
OURS = "trainstack.dev/pools"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# The pools of dev-aws and their prices, in the order of its file.
A100 = flavor("a100", "p4d.24xlarge", 4, usd_per_hour=32.77)
L4 = flavor("l4", "g6.2xlarge", 8, usd_per_hour=0.39)
CPU = flavor("cpu", "g6.2xlarge", 2, gpus=0, usd_per_hour=0.38)  # its GPU left away
MACHINES = {"a100": "p4d.24xlarge", "l4": "g6.2xlarge", "cpu": "g6.2xlarge"}


def test_a_job_without_gpus_runs_where_there_are_none(api: KubernetesApi) -> None:
    pools = [A100, L4, CPU]
    with machines(api, pools, MACHINES), queues(api, pools, TEAM) as lab:
        lab.submit("Applied ML", "prepare")
        assert lab.flavor("prepare") == "cpu"
        assert lab.nodes("prepare")[0].startswith("cpu-")
        # When they are full, more work waits; it does not go to the next flavor.
        lab.submit("Applied ML", "fill", pods=2, cpu="5")
        lab.runs("fill")
        lab.submit("Applied ML", "more", cpu="3")
        assert "untolerated taint" in lab.refusal("more")
        assert not lab.pods("more")


def test_a_job_without_gpus_waits_where_every_node_has_some(api: KubernetesApi) -> None:
    with machines(api, [L4], MACHINES), queues(api, [A100, L4], TEAM) as lab:
        lab.submit("Applied ML", "prepare")
        said = lab.refusal("prepare")
        assert "untolerated taint {nvidia.com/gpu present NoSchedule" in said
        assert "in flavor a100" in said and "in flavor l4" in said
        assert not lab.pods("prepare")


def test_a_job_with_one_gpu_takes_the_cheapest_flavor_that_fits(api: KubernetesApi) -> None:
    with machines(api, [A100, L4], MACHINES), queues(api, [A100, L4], RESEARCH) as lab:
        lab.submit("Applied ML", "evaluate", gpus=1)
        assert lab.flavor("evaluate") == "l4"
        assert lab.nodes("evaluate")[0].startswith("l4-")
        # Research owns eight idle A100; once its own two L4 are taken, it borrows a third one first.
        for index in range(3):
            lab.submit("Research", f"tune-{index}", gpus=1)
            assert lab.flavor(f"tune-{index}") == "l4"
        lab.submit("Research", "train", gpus=8)
        assert lab.flavor("train") == "a100"


def test_a_job_gets_a_pool_with_machines_that_are_large_enough(api: KubernetesApi) -> None:
    """Quota for eight L4 is free, and cheaper, but no machine has two."""
    teams: list[TeamArgs] = [{"name": "Research", "weight": 1, "gpus": {"l4": 8, "a100": 24}}]
    with machines(api, [A100, L4], MACHINES), queues(api, [A100, L4], teams) as lab:
        namespace = lab.namespaces["Research"]

        def pools(of: Object) -> Any:
            terms = of["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
            return terms[0]["matchExpressions"][0]["values"]

        def template(name: str, gpus: int = 2, **pod: Any) -> Any:
            made = api.create(plain_job(namespace, name, gpus, **pod), dry_run=True)
            return made["spec"]["template"]["spec"]

        eventually(lambda: "affinity" in template("probe"), "the policy holds")
        lab.submit("Research", "train", gpus=8)
        assert lab.flavor("train") == "a100"
        lab.submit("Research", "evaluate", gpus=1)
        assert lab.flavor("evaluate") == "l4"
        lab.submit("Research", "prepare-much", gpus=1, cpu="40")
        assert lab.flavor("prepare-much") == "a100"
        near: Object = {"podAntiAffinity": {}}
        assert pools(template("near", affinity=near)) == ["a100"]
        own: Object = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}
        ]}]}}}  # fmt: skip
        assert template("own", affinity=own)["affinity"] == own
        assert "affinity" not in template("chosen", nodeSelector={"trainstack.dev/pool": "a100"})
        assert "affinity" not in template("small", gpus=1)
        assert "affinity" not in template("none", gpus=0)
        made = api.create(jobset(namespace, 8), dry_run=True)["spec"]["replicatedJobs"][0]
        assert pools(made["template"]["spec"]["template"]["spec"]) == ["a100"]
        with any_runtime(api):
            for gpus, expected in ((8, [["a100"]]), (1, [])):
                made = api.create(train_job(namespace, gpus), dry_run=True)
                patches = [one for one in made["spec"]["runtimePatches"] if one["manager"] == OURS]
                jobs = [one["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"] for one in patches]
                found = [pools(one["template"]["spec"]["template"]["spec"]) for (one,) in jobs]
                assert found == expected
            # `kubectl apply` sends lists as they are in the manifest.
            made = api.create(train_job(namespace, 8))
            lists: Object = {"spec": {"runtimePatches": []}}
            again = api.patch(made["apiVersion"], "TrainJob", "run", lists, namespace)
            before, after = (one["spec"]["runtimePatches"] for one in (made, again))
            assert [one for one in before if one["manager"] == OURS] == [
                one for one in after if one["manager"] == OURS
            ]
            api.delete(made["apiVersion"], "TrainJob", "run", namespace)
            gone(api, [made])


def test_an_expensive_pool_is_reached_only_through_its_queue(api: KubernetesApi) -> None:
    pools: list[FlavorArgs] = [{**A100, "own_queue": True}, L4, CPU]
    with machines(api, pools, MACHINES), queues(api, pools, RESEARCH) as lab:
        lab.submit("Applied ML", "prepare")
        lab.submit("Applied ML", "evaluate", gpus=1)
        assert (lab.flavor("prepare"), lab.flavor("evaluate")) == ("cpu", "l4")
        # The owner of idle A100 waits like everybody else when the last of the eight L4 is taken.
        lab.submit("Research", "tune", gpus=1, pods=7)
        assert lab.flavor("tune") == "l4"
        lab.submit("Research", "more", gpus=1)
        assert "in flavor l4" in lab.refusal("more") and "a100" not in lab.refusal("more")
        # Who names the queue gets the pool, the owner of none of it too.
        lab.submit("Applied ML", "train", gpus=8, labels={QUEUE_NAME_LABEL: "a100"})
        assert lab.flavor("train") == "a100"
        assert lab.nodes("train")[0].startswith("a100-")
        lab.submit("Research", "report", labels={QUEUE_NAME_LABEL: "a100"})
        assert "untolerated taint" in lab.refusal("report")


def test_a_pod_with_more_gpus_than_a_machine_of_its_queue_is_refused(api: KubernetesApi) -> None:
    pools: list[FlavorArgs] = [{**A100, "own_queue": True}, L4, CPU]
    with queues(api, pools, RESEARCH, fits=True) as lab:

        def refusal(name: str, gpus: int, **more: Any) -> str:
            try:
                lab.submit("Research", name, gpus=gpus, **more)
            except ApiError as error:
                return str(error)
            return ""

        names = (f"large-{number}" for number in itertools.count())
        said = eventually(lambda: refusal(next(names), 8), "the policy holds")
        assert "default 1, a100 8" in said
        assert refusal("larger", 16, labels={QUEUE_NAME_LABEL: "a100"})
        assert not refusal("small", 1)
        assert not refusal("train", 8, labels={QUEUE_NAME_LABEL: "a100"})
        assert not refusal("prepare", 0)
        namespace = lab.namespaces["Research"]
        for inits, fits in (
            ([side(1)], False), ([side(1), first(1)], False), ([first(2)], False), ([first(1)], True),
            ([first(1), side(0)], True),
        ):  # fmt: skip
            made = jobset(namespace, 1)
            made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["initContainers"] = (
                inits
            )
            if fits:
                api.create(made, dry_run=True)
                continue
            with pytest.raises(ApiError, match="default 1"):
                api.create(made, dry_run=True)
        for body in (jobset(namespace, 8), train_job(namespace, 8)):
            with pytest.raises(ApiError, match="a100 8"):
                api.create(body, dry_run=True)
        api.create(jobset(namespace, 1), dry_run=True)
        with pytest.raises(ApiError, match=r"(?i)runtime"):  # there is none; each webhook has its words
            api.create(train_job(namespace, 1), dry_run=True)


@contextmanager
def any_runtime(api: KubernetesApi) -> Iterator[None]:
    """The runtime of TrainJobs that declare their resources; tests after it expect none."""
    bodies = list(runtimes({}, IMAGE))
    try:
        for body in bodies:
            api.apply(body)
        yield
    finally:
        for body in bodies:
            api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"])


def plain_job(namespace: str, name: str, gpus: int, **pod: Any) -> Object:
    container = {"name": "main", "image": "example.com/none:1", "resources": {"limits": {GPU: gpus}}}
    spec = {"restartPolicy": "Never", "containers": [container], **pod}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": spec}},
    }  # fmt: skip


def first(gpus: int) -> Object:
    """An init container that ends."""
    return {"name": "first", "image": "example.com/none:1", "resources": {"limits": {GPU: gpus}}}


def side(gpus: int) -> Object:
    """A sidecar."""
    return {**first(gpus), "name": "side", "restartPolicy": "Always"}


def jobset(namespace: str, gpus: int) -> Object:
    container = {"name": "main", "image": "example.com/none:1", "resources": {"limits": {GPU: gpus}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = {"name": "node", "replicas": 1, "template": {"spec": {"template": {"spec": pod}}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "set", "namespace": namespace}, "spec": {"replicatedJobs": [job]},
    }  # fmt: skip


def train_job(namespace: str, gpus: int) -> Object:
    trainer = {"resourcesPerNode": {"limits": {GPU: str(gpus)}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "run", "namespace": namespace},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("preferences", "expected"), [((0, 0), ["spot", "demand"]), ((1, 0), ["demand", "spot"])]
)
def test_spot_falls_back_to_on_demand_in_the_declared_order(
    api: KubernetesApi, preferences: tuple[int, int], expected: list[str]
) -> None:
    spot, demand = preferences
    pools = [
        flavor("demand", "g6.2xlarge", 1, usd_per_hour=0.98, preference=demand),
        flavor("spot", "g6.2xlarge", 1, usd_per_hour=0.39, preference=spot),
    ]
    with queues(api, pools, [{"name": "Vision", "weight": 1}]) as lab:
        lab.submit("Vision", "first", gpus=1)
        assert lab.flavor("first") == expected[0]
        lab.submit("Vision", "second", gpus=1)
        assert lab.flavor("second") == expected[1]
        lab.submit("Vision", "third", gpus=1)
        assert "insufficient unused quota" in lab.refusal("third")
        lab.finish("first")
        assert lab.flavor("third") == expected[0]
