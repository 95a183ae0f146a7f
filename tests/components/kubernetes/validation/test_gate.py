"""The gate's Job: how it is queued, run again and named."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pytest

from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.schedule import SmokeSchedule
from components.kubernetes.validation.smoke_home import SmokeHome
from smoke_training.names import CONTROL_PORT_OFFSET
from tests.components.graph import Graph, deploy_graph
from tests.components.kubernetes.validation.validations import (
    CLAIMED,
    FABRIC,
    NODE,
    PLAN,
    args,
    environment,
    smoke,
)


def test_the_job_is_indexed_tries_once_and_stays(job: Mapping[str, Any]) -> None:
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed"
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (2, 2, 0)
    assert "ttlSecondsAfterFinished" not in spec
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert "podFailurePolicy" not in spec  # it would hold it against pods that the queue stopped


def test_the_queue_admits_it_and_the_provider_runs_a_failed_one_again(job: Mapping[str, Any]) -> None:
    metadata = job["metadata"]
    assert metadata["labels"] == {
        "trainstack.dev/run": metadata["name"],
        "kueue.x-k8s.io/queue-name": "smoke",
        "kueue.x-k8s.io/priority-class": "validation",
    }
    assert metadata["annotations"] == {
        "pulumi.com/replaceUnready": "true",
        "pulumi.com/waitFor": "jsonpath={.metadata.uid}",
    }


def test_the_engine_ignores_what_kueue_writes(made: Graph) -> None:
    request = made.requests["Job:dev-smoke-job"]
    assert made.find("Job", "-job")["spec"]["activeDeadlineSeconds"] == 1200 + 900
    assert list(request.ignoreChanges) == ["spec.suspend", "spec.template.spec.nodeSelector"]
    assert request.deleteBeforeReplace


def test_ranks_find_each_other_before_they_are_ready(made: Graph, pod: Mapping[str, Any]) -> None:
    service = made.find("Service")
    assert service["metadata"]["name"] == pod["subdomain"] == made.outputs["job"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    control = int(environment(made)["MASTER_PORT"]) + CONTROL_PORT_OFFSET
    assert [port["port"] for port in service["spec"]["ports"]] == [29500, control]
    assert service["spec"]["selector"] == made.find("Job", "-job")["spec"]["template"]["metadata"]["labels"]
    assert {
        "Service:dev-smoke-service",
        "ServiceAccount:dev-smoke-account",
        "ConfigMap:dev-smoke-code",
    } <= made.waits_for("Job:dev-smoke-job")


def test_the_same_input_is_the_same_job(made: Graph) -> None:
    assert smoke(args()).outputs["job"] == made.outputs["job"]
    assert smoke({**args(), "plan": dict(reversed(PLAN.items()))}).outputs["job"] == made.outputs["job"]


@pytest.mark.parametrize(
    "change",
    [
        {"plan": {"stack": "dev-aws", "instance_type": "p5.48xlarge", "hourly_cost_usd": None}},
        {"image": "registry.example/pytorch@sha256:11"},
        {"nodes": 4},
        {"node": {**NODE, "gpus": 4}},
        {"node": {**NODE, "fabric": {**FABRIC, "count": 1}}},
        {"pool_labels": {"trainstack.dev/pool": "h100"}},
        {"pvc_name": "checkpoints"},
        {"timeout_s": 901},
        {"node": {**NODE, "cpu": 79}},
    ],
)
def test_anything_that_is_validated_changes_the_name(made: Graph, change: Any) -> None:
    changed: Any = {**args(), **change}
    assert smoke(changed).outputs["job"] != made.outputs["job"]


def test_where_results_are_reported_does_not(made: Graph) -> None:
    elsewhere = {**args()["environment"], "REGION": "there"}
    moved = smoke({**args(), "tracking_url": "http://elsewhere:5000", "environment": elsewhere})
    assert moved.outputs["job"] == made.outputs["job"]


def test_validations_of_two_pools_share_their_home_and_no_name() -> None:
    def program(pools: Sequence[str]) -> Graph:
        def both() -> Mapping[str, pulumi.Input[Any]]:
            home = SmokeHome("dev-smoke", {"namespace": "trainstack-smoke"})
            made = {}
            for pool in pools:
                labels = {"trainstack.dev/pool": pool}
                run: Any = {**args(), "pool": pool, "namespace": home.namespace, "pool_labels": labels}
                run["node"] = {**NODE, "fabric": CLAIMED}
                made[pool] = SmokeTest(f"dev-smoke-{pool}", run).job_name
                SmokeSchedule(f"dev-schedule-{pool}", {"schedule": "0 5 * * 1", "run": run})
            return made

        return deploy_graph(both)

    graph = program(["a100", "h100"])
    names = [
        (asked.type, asked.properties["metadata"].get("namespace"), asked.properties["metadata"]["name"])
        for asked in graph.cloud.asked
        if asked.type.startswith("kubernetes:")
    ]
    assert len(names) == len(set(names)) > 20
    assert not any("h100" in name for name in graph.waits_for("Job:dev-smoke-a100-watch"))
    assert program(["a100"]).outputs["a100"] == graph.outputs["a100"] != graph.outputs["h100"]


def test_what_the_queue_writes_where_it_asks_for_nodes_is_left_to_it() -> None:
    plain = smoke(args()).ignored["Job:dev-smoke-job"]
    asked = smoke({**args(), "provisioned": True}).ignored["Job:dev-smoke-job"]
    assert set(asked) - set(plain) == {"spec.template.spec.tolerations", "spec.template.metadata.annotations"}
