"""Every way in which an object carries pods is read, and what is right in another way passes."""

import datetime
from typing import Any

import pytest

from policies.evaluate import RuleOutcome, evaluate
from policies.resource import Resource
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.stack import Stack

BAD = {"containers": [{"name": "train", "securityContext": {"privileged": True}}]}
TEMPLATE = {"spec": BAD}
JOB = {"spec": {"template": TEMPLATE}}
JOBS = {"replicatedJobs": [{"name": "node", "template": JOB}]}
RAY = {"headGroupSpec": {}, "workerGroupSpecs": [{"template": TEMPLATE}]}
WORKLOADS: dict[str, dict[str, Any]] = {
    "core/v1:Pod": TEMPLATE,
    "core/v1:PodTemplate": {"template": TEMPLATE},
    "core/v1:ReplicationController": JOB,
    "apps/v1:Deployment": JOB,
    "apps/v1:StatefulSet": JOB,
    "apps/v1:DaemonSet": JOB,
    "apps/v1:ReplicaSet": JOB,
    "batch/v1:Job": JOB,
    "batch/v1:CronJob": {"spec": {"jobTemplate": JOB}},
    "jobset.x-k8s.io/v1alpha2:JobSet": {"spec": JOBS},
    "trainer.kubeflow.org/v1alpha1:TrainJob": {
        "spec": {"runtimePatches": [{"trainingRuntimeSpec": {"template": {"spec": JOBS}}}]}
    },
    "trainer.kubeflow.org/v1alpha1:TrainingRuntime": {"spec": {"template": {"spec": JOBS}}},
    "trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime": {"spec": {"template": {"spec": JOBS}}},
    "kubeflow.org/v1:PyTorchJob": {"spec": {"pytorchReplicaSpecs": {"Worker": {"template": TEMPLATE}}}},
    "kubeflow.org/v1:TFJob": {"spec": {"tfReplicaSpecs": {"PS": {"template": TEMPLATE}}}},
    "kubeflow.org/v1:XGBoostJob": {"spec": {"xgbReplicaSpecs": {"Master": {"template": TEMPLATE}}}},
    "kubeflow.org/v1:PaddleJob": {"spec": {"paddleReplicaSpecs": {"Worker": {"template": TEMPLATE}}}},
    "kubeflow.org/v1:JAXJob": {"spec": {"jaxReplicaSpecs": {"Worker": {"template": TEMPLATE}}}},
    "kubeflow.org/v1:MPIJob": {"spec": {"mpiReplicaSpecs": {"Launcher": {"template": TEMPLATE}}}},
    "kubeflow.org/v2beta1:MPIJob": {"spec": {"mpiReplicaSpecs": {"Worker": {"template": TEMPLATE}}}},
    "ray.io/v1:RayCluster": {"spec": RAY},
    "ray.io/v1:RayJob": {"spec": {"rayClusterSpec": RAY}},
    "ray.io/v1:RayService": {"spec": {"rayClusterConfig": RAY}},
    "leaderworkerset.x-k8s.io/v1:LeaderWorkerSet": {
        "spec": {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}}
    },
}


def judge(rule: str, *resources: Resource, **settings: Any) -> list[RuleOutcome]:
    chosen = RuleSettings(today=datetime.date(2026, 11, 23), **settings)
    return evaluate(Stack(resources, chosen), [CATALOG.rules[rule]])


def results(rule: str, *resources: Resource, **settings: Any) -> set[str]:
    return {one.result for one in judge(rule, *resources, **settings)}


def one(kind: str, name: str = "train", /, **props: Any) -> Resource:
    metadata = {"name": name, "namespace": "team-vision", **props.pop("metadata", {})}
    return Resource(f"kubernetes:{kind}", name, name, props={"metadata": metadata, **props})


def pods(kind: str = "batch/v1:Job", /, **spec: Any) -> Resource:
    return one(kind, spec={"template": {"spec": spec}})


def test_the_cases_are_all_kinds_with_pods() -> None:
    assert {f"kubernetes:{kind}" for kind in WORKLOADS} == set(CATALOG.rules["MLS-K8S-01"].kinds)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_privileged_container_is_found_wherever_it_is(kind: str) -> None:
    (found,) = judge("MLS-K8S-01", Resource(f"kubernetes:{kind}", "u", "u", props=WORKLOADS[kind]))
    assert (found.result, found.path.endswith(".containers[0].securityContext.privileged")) == ("fail", True)


@pytest.mark.parametrize("group", ["initContainers", "ephemeralContainers"])
def test_containers_that_start_first_count_too(group: str) -> None:
    assert results("MLS-K8S-01", pods(**{group: BAD["containers"]})) == {"fail"}


def test_a_process_of_a_windows_host_is_privileged_also_by_its_pod() -> None:
    windows = {"windowsOptions": {"hostProcess": True}}
    assert results("MLS-K8S-01", pods(containers=[{"name": "a"}], securityContext=windows)) == {"fail"}
    own = {"securityContext": {"windowsOptions": {"hostProcess": False}}}
    assert results("MLS-K8S-01", pods(containers=[own], securityContext=windows)) == {"pass"}


HOST = {"hostNetwork": True, "containers": [{"name": "train"}]}
IN_POOL = {"key": "trainstack.dev/pool", "operator": "In", "values": ["h100"]}


def _affinity(*terms: Any) -> Any:
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeSelector": {"cloud.google.com/gke-nodepool": "h100"}}, "pass"),
        ({"nodeSelector": {"cloud.google.com/gke-nodepool": "other"}}, "fail"),
        ({"affinity": _affinity(IN_POOL)}, "pass"),
        ({"affinity": _affinity(IN_POOL, {"key": "x", "operator": "Exists"})}, "fail"),
        ({"affinity": _affinity({**IN_POOL, "operator": "NotIn"})}, "fail"),
        ({"nodeSelector": {"cloud.google.com/gke-nodepool": "h100"}, "hostPID": True}, "fail"),
        ({}, "fail"),
    ],
)
def test_the_network_of_the_host_is_for_pods_that_run_on_listed_pools_only(spec: Any, expected: str) -> None:
    assert results("MLS-K8S-02", pods(**HOST, **spec), host_network_pools=("h100",)) == {expected}


GPU = {"limits": {"nvidia.com/gpu": "1"}}
BOUNDED = {"limits": {"nvidia.com/gpu": "1", "memory": "8Gi"}}
SHM = {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm/"}]}


def _memory(medium: str) -> Any:
    return {"volumes": [{"name": "shm", "emptyDir": {"medium": medium}}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"image": "jax", "resources": BOUNDED}]}, "pass"),
        ({"containers": [{"image": "jax", "resources": GPU}]}, "fail"),
        ({"containers": [{"image": "jax", "resources": GPU}], "resources": BOUNDED}, "pass"),
        ({"containers": [{"image": "pytorch", "resources": BOUNDED}]}, "fail"),
        ({"containers": [{"image": "pytorch", "resources": BOUNDED, **SHM}], **_memory("Memory")}, "pass"),
        ({"containers": [{"image": "pytorch", "resources": BOUNDED, **SHM}], **_memory("")}, "fail"),
        ({"containers": [{"image": "pytorch", "resources": BOUNDED}], "hostIPC": True}, "pass"),
        ({"containers": [{"image": "pytorch", "resources": {"limits": {"cpu": 1}}}]}, "not-applicable"),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 0}}}]}, "not-applicable"),
        ({"containers": [{"resources": {"requests": {"nvidia.com/mig-1g.10gb": 1}}}]}, "fail"),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 2, "memory": 1}}}]}, "fail"),
        ({"initContainers": [{"image": "pytorch", "resources": BOUNDED}]}, "pass"),
        ({"initContainers": [{"image": "pytorch", "resources": GPU}]}, "fail"),
        ({"initContainers": [{"image": "torch", "restartPolicy": "Always", "resources": BOUNDED}]}, "fail"),
    ],
)
def test_containers_with_gpus(spec: Any, expected: str) -> None:
    assert results("MLS-K8S-04", pods(**spec)) == {expected}


def test_a_limit_range_of_the_namespace_gives_a_memory_limit() -> None:
    given = {"limits": [{"type": "Container", "default": {"memory": "8Gi"}}]}
    job = pods(containers=[{"image": "jax", "resources": GPU}])
    assert results("MLS-K8S-04", job, one("core/v1:LimitRange", spec=given)) == {"pass"}
    elsewhere = one("core/v1:LimitRange", spec=given, metadata={"namespace": "other"})
    assert results("MLS-K8S-04", job, elsewhere) == {"fail"}


def test_what_a_train_job_asks_for_its_nodes_counts() -> None:
    job = one("trainer.kubeflow.org/v1alpha1:TrainJob", spec={"trainer": {"resourcesPerNode": GPU}})
    assert results("MLS-K8S-04", job) == {"fail"}


DEADLINE = {"activeDeadlineSeconds": 60}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (one("batch/v1:Job", spec={**DEADLINE, "backoffLimit": 3}), "pass"),
        (one("batch/v1:Job", spec={**DEADLINE, "backoffLimit": 4}), "fail"),
        (one("batch/v1:Job", spec={**DEADLINE, "backoffLimitPerIndex": 1}), "pass"),
        (one("batch/v1:CronJob", spec={"jobTemplate": {"spec": {**DEADLINE, "backoffLimit": 0}}}), "pass"),
        (one("batch/v1:CronJob", spec={"jobTemplate": {"spec": {"backoffLimit": 0}}}), "fail"),
        (one("trainer.kubeflow.org/v1alpha1:TrainJob", spec=DEADLINE), "pass"),
        (one("kubeflow.org/v1:PyTorchJob", spec={"runPolicy": DEADLINE}), "fail"),
        (one("kubeflow.org/v1:PyTorchJob", spec={"runPolicy": {**DEADLINE, "backoffLimit": 1}}), "pass"),
        (one("ray.io/v1:RayJob", spec=DEADLINE), "pass"),
        (one("ray.io/v1:RayJob", spec={}), "fail"),
        (
            one(
                "batch/v1:Job",
                metadata={"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "60"}},
                spec={"backoffLimit": 0},
            ),
            "pass",
        ),
    ],
)
def test_jobs_end(job: Resource, expected: str) -> None:
    assert results("MLS-K8S-06", job) == {expected}


def test_who_makes_a_job_outside_of_a_stack_lets_kubernetes_delete_it() -> None:
    spec = {**DEADLINE, "backoffLimit": 0}
    props = {"metadata": {"name": "train"}, "spec": spec}
    live = Resource("kubernetes:batch/v1:Job", "u", "u", props=props, origin="live")
    assert results("MLS-K8S-06", live) == {"fail"}
    about = {"name": "train", "managedFields": [{"manager": "pulumi-kubernetes-0a1b2c3d"}]}
    ours = Resource("kubernetes:batch/v1:Job", "u", "u", props={**props, "metadata": about}, origin="live")
    assert results("MLS-K8S-06", ours) == {"pass"}
    kept = {**props, "spec": {**spec, "ttlSecondsAfterFinished": 60}}
    assert results("MLS-K8S-06", Resource("kubernetes:batch/v1:Job", "u", "u", props=kept)) == {"pass"}
