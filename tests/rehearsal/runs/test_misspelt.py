"""Misspelt names, at any depth and in every package, are reported with the nearest valid one."""

from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.core.schema import Schemas
from rehearsal.core.validate import validate
from tests.rehearsal.driver import CACHE

CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("aws:eks/nodeGroup:NodeGroup", {"scalingConfig": {"minSizes": 1}}, "scalingConfig.minSizes", "minSize"),
    (
        "aws:ec2/launchTemplate:LaunchTemplate",
        {"networkInterfaces": [{"interfaceTyp": "efa"}]},
        "networkInterfaces[0].interfaceTyp",
        "interfaceType",
    ),
    (
        "aws:ec2/launchTemplate:LaunchTemplate",
        {"blockDeviceMappings": [{"ebs": {"volumeSise": 100}}]},
        "blockDeviceMappings[0].ebs.volumeSise",
        "volumeSize",
    ),
    (
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        {"rules": [{"id": "a", "status": "Enabled", "expiration": {"day": 3}}]},
        "rules[0].expiration.day",
        "days",
    ),
    ("gcp:container/cluster:Cluster", {"initialNodesCount": 1}, "initialNodesCount", "initialNodeCount"),
    (
        "gcp:container/nodePool:NodePool",
        {"nodeConfig": {"guestAccelerators": [{"type": "nvidia-h100-80gb", "cout": 8}]}},
        "nodeConfig.guestAccelerators[0].cout",
        "count",
    ),
    (
        "gcp:storage/bucket:Bucket",
        {"lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"ages": 3}}]},
        "lifecycleRules[0].condition.ages",
        "age",
    ),
    (
        "kubernetes:apps/v1:Deployment",
        {"spec": {"template": {"spec": {"containers": [{"resources": {"limit": {}}}]}}}},
        "spec.template.spec.containers[0].resources.limit",
        "limits",
    ),
    ("kubernetes:batch/v1:Job", {"spec": {"backofLimit": 0}}, "spec.backofLimit", "backoffLimit"),
    (
        "kubernetes:core/v1:PersistentVolume",
        {"spec": {"csi": {"volumeHandel": "x"}}},
        "spec.csi.volumeHandel",
        "volumeHandle",
    ),
]


@pytest.fixture(scope="module")
def schemas() -> Iterator[dict[str, Schemas]]:
    found = {package: Schemas(package, CACHE) for package in ("aws", "gcp", "kubernetes")}
    yield found
    for one in found.values():
        one.close()


@pytest.mark.parametrize(("token", "inputs", "path", "meant"), CASES)
def test_the_path_and_the_nearest_name_are_reported(
    schemas: dict[str, Schemas], token: str, inputs: dict[str, Any], path: str, meant: str
) -> None:
    schema = schemas[token.partition(":")[0]].resource(token)
    assert schema is not None
    reasons = {failure.property: failure.reason for failure in validate(schema, inputs)}
    assert f"mean {meant}" in reasons.get(path, str(reasons))
