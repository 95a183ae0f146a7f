"""Flavors whose nodes are asked for when a job comes."""

from collections.abc import Mapping
from typing import Any

from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.quotas import FlavorArgs
from infra.naming import pool_queue
from tests.components.kubernetes.queueing.definitions import validate
from tests.components.kubernetes.queueing.objects import FLAVORS, TEAMS, bodies, by_name
from tests.components.kubernetes.queueing.pools import GATE, cpu_flavor, gpu_flavor

QUEUED: FlavorArgs = {
    **gpu_flavor("queued", adapters=0),
    "provisioning_class": "queued-provisioning.example",
    "taint": "example.com/queued",
}


def test_nodes_of_a_queued_flavor_are_asked_for_before_a_job_is_admitted(
    crds: Mapping[str, dict[str, Any]],
) -> None:
    flavors = [*FLAVORS, QUEUED]
    for body in bodies(flavors):
        validate(crds[body["kind"]], body)
    (config,) = by_name("ProvisioningRequestConfig", flavors).values()
    assert config["spec"]["provisioningClassName"] == "queued-provisioning.example"
    assert config["spec"]["managedResources"] == ["nvidia.com/gpu"]
    (check,) = by_name("AdmissionCheck", flavors).values()
    assert check["spec"]["controllerName"] == "kueue.x-k8s.io/provisioning-request"
    assert check["spec"]["parameters"]["name"] == config["metadata"]["name"]
    queues = by_name("ClusterQueue", flavors)
    assert "admissionChecksStrategy" not in queues.pop("smoke--a100")["spec"], "it has not that flavor"
    for queue in queues.values():
        # Of that flavor alone: other jobs of the queue do not wait for it.
        assert queue["spec"]["admissionChecksStrategy"] == {
            "admissionChecks": [{"name": check["metadata"]["name"], "onFlavors": ["queued"]}]
        }


def test_jobs_of_a_queued_flavor_tolerate_its_taint_by_themselves() -> None:
    flavor = by_name("ResourceFlavor", [*FLAVORS, QUEUED])["queued"]["spec"]
    assert flavor["tolerations"] == [
        {"key": "example.com/queued", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    ]
    # What has no GPUs is still kept away: only the further taint is tolerated.
    assert [taint["key"] for taint in flavor["nodeTaints"]] == ["nvidia.com/gpu"]


def test_a_queued_flavor_with_a_queue_of_its_own_is_checked_there_alone() -> None:
    flavors: list[FlavorArgs] = [*FLAVORS, {**QUEUED, "own_queue": True}]
    checked = {
        name
        for name, queue in by_name("ClusterQueue", flavors).items()
        if "admissionChecksStrategy" in queue["spec"]
    }
    assert checked == {pool_queue(team["name"], "queued") for team in TEAMS}


def test_checks_exist_before_queues_that_name_them() -> None:
    order = [{body["kind"] for body in layer} for layer in kueue.layers([QUEUED, cpu_flavor()], TEAMS, GATE)]
    at = {kind: number for number, kinds in enumerate(order) for kind in kinds}
    assert at["ProvisioningRequestConfig"] < at["AdmissionCheck"] < at["ClusterQueue"]
