"""Warehouses of Redshift: encryption, addresses and snapshots, by the defaults of the provider's version."""

from dataclasses import replace
from typing import Any

import pytest

from tests.policies.rules.judging import made, results

RULE, CLUSTER = "MLS-TRK-02", "aws:redshift/cluster:Cluster"
WORKGROUP = "aws:redshiftserverless/workgroup:Workgroup"


@pytest.mark.parametrize(
    ("kind", "version", "props", "expected"),
    [
        (CLUSTER, "7.51.1", {}, ["pass"]),
        (CLUSTER, "7.51.1", {"encrypted": "true", "publiclyAccessible": False}, ["pass"]),
        (CLUSTER, "7.51.1", {"encrypted": "false"}, ["fail"]),
        (CLUSTER, "7.51.1", {"encrypted": "false", "snapshotIdentifier": "a"}, ["undetermined"]),
        (CLUSTER, "7.51.1", {"publiclyAccessible": True}, ["fail"]),
        (CLUSTER, "7.51.1", {"automatedSnapshotRetentionPeriod": 0}, ["fail"]),
        (CLUSTER, "7.51.1", {"automatedSnapshotRetentionPeriod": 1}, ["pass"]),
        (CLUSTER, "6.83.0", {"encrypted": True}, ["fail"]),
        (CLUSTER, "6.83.0", {"encrypted": True, "publiclyAccessible": False}, ["pass"]),
        (CLUSTER, "", {}, ["pass"]),
        (WORKGROUP, "6.83.0", {}, ["pass"]),
        (WORKGROUP, "7.51.1", {"publiclyAccessible": True}, ["fail"]),
    ],
)
def test_warehouses(kind: str, version: str, props: dict[str, Any], expected: list[str]) -> None:
    assert results(RULE, replace(made(kind, **props), plugin=version)) == expected
