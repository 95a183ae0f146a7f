from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.kubernetes.accelerators import Accelerators, AcceleratorsArgs
from infra.errors import UserError
from tests.components.graph import Graph, deploy_graph

ON_POOLS = {"key": "trainstack.dev/pool", "operator": "In", "values": ["a100", "l4"]}
TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def accelerators(**changes: Any) -> Graph:
    usual: dict[str, Any] = {
        "gpu_pools": ["a100", "l4"],
        "efa_pools": ["a100"],
        "efa_driver": "device_plugin",
        "kubernetes_version": "1.34",
    }
    args = cast(AcceleratorsArgs, usual | changes)

    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"releases": Accelerators("dev-accelerators", args).releases}

    return deploy_graph(program)


@pytest.fixture(scope="module")
def made() -> Graph:
    return accelerators()


def test_the_device_plugin_runs_on_gpu_pools_and_needs_no_feature_discovery(made: Graph) -> None:
    plugin = made.find("Release", "nvidia-device-plugin")
    assert plugin["repositoryOpts"] == {"repo": "https://nvidia.github.io/k8s-device-plugin"}
    assert plugin["version"] == "0.20.0"
    affinity = plugin["values"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert affinity == {"nodeSelectorTerms": [{"matchExpressions": [ON_POOLS]}]}
    assert plugin["values"]["tolerations"] == TOLERATIONS


def test_dcgm_keeps_the_jobs_own_labels_and_needs_no_prometheus_operator(made: Graph) -> None:
    values = made.find("Release", "dcgm-exporter")["values"]
    assert values["serviceMonitor"] == {"enabled": False, "honorLabels": True}
    assert values["tolerations"] == TOLERATIONS
    monitored = accelerators(service_monitor=True).find("Release", "dcgm-exporter")["values"]
    assert monitored["serviceMonitor"]["enabled"] is True


@pytest.mark.parametrize(
    ("driver", "version", "installed"),
    [
        ("device_plugin", "1.34", {"aws-efa-k8s-device-plugin"}),
        ("dra", "1.35", {"aws-dranet"}),
        ("none", "1.34", set()),
    ],
)
def test_one_efa_driver_or_none_and_only_on_pools_with_efa(
    driver: str, version: str, installed: set[str]
) -> None:
    graph = accelerators(efa_driver=driver, kubernetes_version=version)
    assert set(graph.outputs["releases"]) == {"nvidia-device-plugin", "dcgm-exporter"} | installed
    for chart in installed:
        values = graph.find("Release", chart)["values"]
        assert values["supportedInstanceLabels"] == {"keys": ["trainstack.dev/pool"], "values": ["a100"]}
        assert values["tolerations"] == TOLERATIONS


def test_a_cluster_without_gpus_installs_nothing() -> None:
    graph = accelerators(gpu_pools=[], efa_pools=[])
    assert graph.all("Release") == {}


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("efa_driver", {"efa_driver": "both"}),
        ("efa_driver", {"efa_driver": "dra"}),
        ("efa_pools", {"efa_pools": ["h100"]}),
    ],
)
def test_what_cannot_work_is_refused(path: str, changes: dict[str, Any]) -> None:
    with pytest.raises(UserError) as caught:
        accelerators(**changes)
    assert [problem.path for problem in caught.value.problems] == [path]
