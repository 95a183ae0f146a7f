"""The validation as a run plan, and as the deploy's own gate: the same pods, written twice."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.kubernetes.smoke_test import SmokeTest, SmokeTestArgs
from smoke_training.launchers import kubernetes, runplan
from smoke_training.launchers.registry import LAUNCHERS
from smoke_training.launchers.runplan import RunPlanError
from smoke_training.launchers.validation import Site, validation
from tests.components.graph import deploy_graph
from tests.components.kubernetes.test_smoke_test import args
from tests.smoke_training import samples

IMAGE = "registry.example/pytorch@sha256:" + "00" * 32


def site(**changes: Any) -> Site:
    given: dict[str, Any] = {
        "cpu": 80,
        "memory_gib": 900,
        "efa_per_node": 4,
        "config_map": "validation",
        "namespace": "trainstack-smoke",
        "queue": "smoke",
        "priority": "validation",
        "node_labels": {"trainstack.dev/pool": "a100"},
    }
    return Site(**{**given, **changes})


def rendered(**changes: Any) -> dict[str, Any]:
    _, job = kubernetes.job(validation(samples.plan(image=IMAGE, timeout_s=900), site(**changes)))
    return job


def gate(**changes: Any) -> Mapping[str, Any]:
    given: Any = {**args(), "image": IMAGE, **changes}

    def program() -> Mapping[str, pulumi.Input[Any]]:
        wanted: SmokeTestArgs = given
        return {"job": SmokeTest("dev-smoke", wanted).job_name}

    return deploy_graph(program).find("Job")


def container(job: Mapping[str, Any]) -> Mapping[str, Any]:
    (only,) = job["spec"]["template"]["spec"]["containers"]
    found: Mapping[str, Any] = only
    return found


@pytest.mark.parametrize("claim", [None, "checkpoints"])
def test_its_pods_are_the_gates_pods(claim: str | None) -> None:
    ours, theirs = rendered(claim=claim), gate(**({"pvc_name": claim} if claim else {}))
    own, other = dict(ours["spec"]), dict(theirs["spec"])
    for key in ("completionMode", "completions", "parallelism", "backoffLimit", "activeDeadlineSeconds"):
        assert own[key] == other[key], key
    pod, wanted = own["template"]["spec"], other["template"]["spec"]
    for key in ("restartPolicy", "tolerations", "securityContext", "terminationGracePeriodSeconds"):
        assert pod[key] == wanted[key], key
    assert pod["affinity"]["nodeAffinity"] == wanted["affinity"]["nodeAffinity"]
    assert pod["automountServiceAccountToken"] is wanted["automountServiceAccountToken"] is False
    for key in ("resources", "securityContext", "volumeMounts", "terminationMessagePolicy", "image"):
        assert container(ours)[key] == container(theirs)[key], key
    volumes = [
        {**volume, "configMap": None} if volume["name"] == "code" else volume for volume in pod["volumes"]
    ]
    expected = [
        {**volume, "configMap": None} if volume["name"] == "code" else volume for volume in wanted["volumes"]
    ]
    assert volumes == expected
    assert pod.get("initContainers") == wanted.get("initContainers")
    assert container(ours)["command"] == [*container(theirs)["command"], *container(theirs)["args"]]


def test_it_is_told_what_the_gate_is_told() -> None:
    ours = {row["name"] for row in container(rendered())["env"]}
    theirs = {row["name"] for row in container(gate())["env"]}
    assert theirs - ours == {"MLFLOW_TRACKING_URI", "MLFLOW_CREDENTIALS_SECRET_ARN", "AWS_REGION"}
    assert ours <= theirs


@pytest.mark.parametrize("kind", ["job", "jobset", "trainjob", "pytorchjob", "mpijob", "sbatch", "torchrun"])
def test_it_is_a_run_like_any_other(kind: str) -> None:
    plan = validation(samples.plan(image=IMAGE), site(config_map=None))
    runplan.check(plan)
    text = LAUNCHERS[kind].render(plan)
    assert "smoke_training.zip" in text and "torchrun" not in text.replace("torchrun.log", "")


def test_a_config_map_is_for_clusters_only() -> None:
    with pytest.raises(RunPlanError, match="Slurm has no ConfigMaps"):
        LAUNCHERS["sbatch"].render(validation(samples.plan(image=IMAGE), site()))
