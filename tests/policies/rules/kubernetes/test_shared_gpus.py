"""Teams that take turns on GPUs: on both clouds, by the device plugin of anyone, and named or not."""

from collections.abc import Mapping
from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.kubernetes.test_pods import one, results

RULE, QUEUES = "MLS-K8S-12", "kueue.x-k8s.io/v1beta2"
LABELS = {"pool": "notebooks"}
TURNS = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}


def flavor(named: str = "", labels: Mapping[str, str] = LABELS) -> Resource:
    notes = {"trainstack.dev/teams": named} if named else {}
    metadata = {"name": "notebooks", "namespace": None, "annotations": notes}
    return one(f"{QUEUES}:ResourceFlavor", "notebooks", metadata=metadata, spec={"nodeLabels": labels})


def queue(name: str, selector: Any = None) -> Resource:
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "notebooks"}]}]
    chosen = {"matchLabels": {"team": name}} if selector is None else selector
    spec = {"resourceGroups": groups, "namespaceSelector": chosen}
    return one(f"{QUEUES}:ClusterQueue", name, metadata={"namespace": None}, spec=spec)


def gke(strategy: str) -> Resource:
    sharing = {"gpuSharingStrategy": strategy, "maxSharedClientsPerGpu": 4}
    gpus = [{"type": "nvidia-l4", "count": 1, "gpuSharingConfig": sharing}]
    node = {"machineType": "g2-standard-8", "labels": LABELS, "guestAccelerators": gpus}
    props = {"location": "us-central1", "nodeConfig": node}
    return Resource("gcp:container/nodePool:NodePool", "pool", "pool", id="pool", props=props)


def partitions() -> Resource:
    gpus = [{"type": "nvidia-h100-80gb", "count": 8, "gpuPartitionSize": "1g.10gb"}]
    node = {"machineType": "a3-highgpu-8g", "labels": LABELS, "guestAccelerators": gpus}
    return Resource("gcp:container/nodePool:NodePool", "pool", "pool", id="pool", props={"nodeConfig": node})


def eks(**labels: str) -> Resource:
    props = {"instanceTypes": ["g6.12xlarge"], "labels": {**LABELS, **labels}}
    return Resource("aws:eks/nodeGroup:NodeGroup", "pool", "pool", id="pool", props=props)


def release(config: Mapping[str, Any], default: str = "") -> Resource:
    values = {"config": {"map": config, "default": default}}
    return one("helm.sh/v3:Release", "plugin", chart="nvidia-device-plugin", values=values)


TWO = (queue("vision"), queue("speech"))


@pytest.mark.parametrize(
    ("others", "named", "expected"),
    [
        ((gke("TIME_SHARING"), queue("vision")), "", "pass"),
        ((gke("TIME_SHARING"), *TWO), "", "fail"),
        ((gke("TIME_SHARING"), *TWO), "speech,vision", "pass"),
        ((gke("TIME_SHARING"), *TWO), "vision", "fail"),
        ((gke("TIME_SHARING"), queue("all", {})), "", "fail"),
        ((partitions(), *TWO), "", "not-applicable"),
        ((), "", "not-applicable"),
    ],
)
def test_teams_share_by_turns_only_where_they_are_named(
    others: tuple[Resource, ...], named: str, expected: str
) -> None:
    assert results(RULE, flavor(named), *others) == {expected}


def test_a_flavor_of_other_nodes_is_not_concerned() -> None:
    assert results(RULE, flavor(labels={"pool": "l4"}), gke("TIME_SHARING"), *TWO) == {"not-applicable"}


@pytest.mark.parametrize(
    ("label", "default", "expected"),
    [
        ({"nvidia.com/device-plugin.config": "turns"}, "whole", "fail"),
        ({}, "turns", "fail"),
        ({"nvidia.com/device-plugin.config": "whole"}, "turns", "not-applicable"),
        ({}, "whole", "not-applicable"),
    ],
)
def test_the_device_plugin_shares_by_the_configuration_of_the_node(
    label: dict[str, str], default: str, expected: str
) -> None:
    slicing = "    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"
    texts = {"turns": f"version: v1\nsharing:\n  timeSlicing:\n{slicing}"}
    plugin = release({**texts, "whole": "version: v1"}, default)
    assert results(RULE, flavor(), eks(**label), plugin, *TWO) == {expected}


def test_a_release_of_the_operator_has_the_chart_as_a_part() -> None:
    values = {"nvidia-device-plugin": {"config": {"map": {"turns": TURNS}, "default": "turns"}}}
    plugin = one("helm.sh/v3:Release", "stack", chart="gpu-operator", values=values)
    assert results(RULE, flavor(), eks(), plugin, *TWO) == {"fail"}
