import json
from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.kubernetes.accelerators import Accelerators, AcceleratorsArgs
from tests.components.graph import Graph, deploy_graph

ON_POOLS = {"key": "trainstack.dev/pool", "operator": "In", "values": ["a100", "l4"]}
TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def accelerators(**changes: Any) -> Graph:
    args = cast(AcceleratorsArgs, {"gpu_pools": ["a100", "l4"]} | changes)

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


def test_the_plugin_has_a_configuration_by_number_of_pods_and_whole_gpus_without_a_label() -> None:
    turns = [{"kind": "time_sharing", "clients": number} for number in (4, 2, 4)]
    values = accelerators(sharing=turns).find("Release", "nvidia-device-plugin")["values"]
    configs = {name: json.loads(text) for name, text in values["config"]["map"].items()}
    assert configs.keys() == {"whole", "turns-2", "turns-4"}
    assert values["config"]["default"] == "whole" and "sharing" not in configs["whole"]
    assert configs["turns-4"]["sharing"]["timeSlicing"] == {
        "renameByDefault": False,
        "failRequestsGreaterThanOne": True,
        "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
    }
    assert values["migStrategy"] == "none"  # else the plugin would look for parts
    assert "config" not in accelerators().find("Release", "nvidia-device-plugin")["values"]


def test_parts_are_counted_as_gpus_on_their_nodes_alone() -> None:
    sharing = [{"kind": "mig", "partition": "1g.5gb"}, {"kind": "time_sharing", "clients": 2}]
    values = accelerators(sharing=sharing).find("Release", "nvidia-device-plugin")["values"]
    configs = {name: json.loads(text) for name, text in values["config"]["map"].items()}
    strategies = {name: each["flags"]["migStrategy"] for name, each in configs.items()}
    # `whole` too: nodes whose label is gone may still have parts, which must not be offered as GPUs.
    assert strategies == {"whole": "single", "turns-2": "none", "partitions": "single"}
    # One for all nodes would override them (templates/daemonset-device-plugin.yml).
    assert "migStrategy" not in values


def test_dcgm_needs_no_prometheus_operator_and_measures_errors_by_code(made: Graph) -> None:
    values = made.find("Release", "dcgm-exporter")["values"]
    assert values["serviceMonitor"] == {"enabled": False}
    assert values["tolerations"] == TOLERATIONS
    assert "DCGM_EXP_XID_ERRORS_COUNT, gauge, " in values["customMetrics"]


def test_the_exporter_reads_the_one_engine_of_the_node(made: Graph) -> None:
    assert "extraEnv" not in made.find("Release", "dcgm-exporter")["values"]
    values = accelerators(host_engine_port=5555).find("Release", "dcgm-exporter")["values"]
    node, engine = values["extraEnv"]
    assert node["valueFrom"] == {"fieldRef": {"fieldPath": "status.hostIP"}}
    assert engine == {"name": "DCGM_REMOTE_HOSTENGINE_INFO", "value": f"$({node['name']}):5555"}


def test_the_exporter_has_memory_for_eight_gpus(made: Graph) -> None:
    assert made.find("Release", "dcgm-exporter")["values"]["resources"]["limits"] == {"memory": "1Gi"}


def test_the_drivers_of_a_fabric_are_installed_beside_them() -> None:
    graph = accelerators(drivers={"aws-dranet": {"tolerations": TOLERATIONS}})
    assert set(graph.outputs["releases"]) == {"nvidia-device-plugin", "dcgm-exporter", "aws-dranet"}
    assert graph.find("Release", "aws-dranet")["values"] == {"tolerations": TOLERATIONS}


def test_a_cluster_without_gpus_installs_nothing() -> None:
    assert accelerators(gpu_pools=[]).all("Release") == {}


def test_a_cloud_that_hands_out_gpus_itself_gets_no_second_plugin_or_exporter() -> None:
    made = accelerators(managed=True, drivers={"aws-dranet": {"x": 1}})
    assert list(made.all("Release")) == ["dev-accelerators-aws-dranet"]
    assert accelerators(managed=True).all("Release") == {}
