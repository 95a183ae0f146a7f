"""Quotas and scarce machines, with the messages of the services."""

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws.limits import AccountLimits
from rehearsal.core.model import RefusalError

NODES = "aws:eks/nodeGroup:NodeGroup"


def group(machine: str, count: int, market: str = "ON_DEMAND", *more: str) -> dict[str, Any]:
    return {
        "instanceTypes": [machine, *more],
        "capacityType": market,
        "scalingConfig": {"desiredSize": count, "maxSize": 9, "minSize": 0},
    }


def refuse(folder: Path, scenario: dict[str, Any], inputs: dict[str, Any], *zones: str) -> str:
    (folder / "faults.json").write_text(json.dumps(scenario))
    try:
        AccountLimits(folder / "faults.json").refuse(NODES, "train", inputs, list(zones), [])
    except RefusalError as refusal:
        return str(refusal)
    return ""


def test_the_service_refuses_vcpus_beyond_the_quota(tmp_path: Path) -> None:
    message = refuse(tmp_path, {"quotas": {"ec2_on_demand_p": 100}}, group("p5.48xlarge", 1), "us-east-1a")
    assert message.startswith(
        "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU"
    )
    assert not refuse(tmp_path, {"quotas": {"ec2_on_demand_p": 192}}, group("p5.48xlarge", 1), "us-east-1a")


@pytest.mark.parametrize(
    ("token", "quota", "said"),
    [
        # hashicorp/terraform-provider-aws issue 17402.
        (
            "aws:sagemaker/domain:Domain",
            "sagemaker_domains",
            "ResourceLimitExceeded: The account-level service limit 'Total domains' is 0 Domains, with "
            "current utilization of 0 Domains and a request delta of 1 Domains.",
        ),
        ("aws:ec2/vpc:Vpc", "vpcs", "VpcLimitExceeded: The maximum number of VPCs has been reached."),
        ("aws:eks/cluster:Cluster", "eks_clusters", "ResourceLimitExceededException: "),
        ("aws:rds/cluster:Cluster", "db_clusters", "DBClusterQuotaExceededFault: "),
    ],
)
def test_the_service_refuses_what_the_account_may_not_have_one_more_of(
    tmp_path: Path, token: str, quota: str, said: str
) -> None:
    (tmp_path / "faults.json").write_text(json.dumps({"quotas": {quota: 0}}))
    with pytest.raises(RefusalError) as refused:
        AccountLimits(tmp_path / "faults.json").refuse(token, "one", {}, [], [])
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("inputs", "zones", "refused"),
    [
        (group("p5.48xlarge", 2, "SPOT"), ["us-east-1a"], True),
        (group("p5.48xlarge", 2), ["us-east-1a"], False),  # on demand instead
        (group("p5.48xlarge", 2, "SPOT"), ["us-east-1a", "us-east-1b"], False),  # another zone has them
        (group("p5.48xlarge", 2, "SPOT", "p4d.24xlarge"), ["us-east-1a"], False),  # another type
    ],
)
def test_scarce_machines_fail_and_fall_back(
    tmp_path: Path, inputs: dict[str, Any], zones: list[str], refused: bool
) -> None:
    row = {"instance_type": "p5.48xlarge", "zone": "us-east-1a", "market": "spot", "instances": 1}
    message = refuse(tmp_path, {"capacity": [row]}, inputs, *zones)
    assert ("InsufficientInstanceCapacity" in message and "Could not launch Spot" in message) is refused
