"""Driver of an emulated AWS account, without an engine."""

import json
from pathlib import Path
from typing import Any

from rehearsal.aws.cloud import EmulatedAws
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from tests.rehearsal import driver

EKS_TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "eks.amazonaws.com"}}
        ],
    }
)


class Driver(driver.Driver):
    """A driver with an account of its own."""

    def __init__(self, folder: Path, schemas: Schemas, state: State | None = None) -> None:
        state = state or State(folder / "state.sqlite")
        super().__init__("aws", state, EmulatedAws(state, schemas, folder), {"region": "us-east-1"})

    def network(self) -> tuple[str, list[str]]:
        vpc = self.create("ec2/vpc:Vpc", "vpc", cidrBlock="10.0.0.0/16")["id"]
        subnets = [
            self.create(
                "ec2/subnet:Subnet",
                f"subnet-{zone}",
                vpcId=vpc,
                cidrBlock=f"10.0.{index}.0/24",
                availabilityZone=f"us-east-1{zone}",
            )["id"]
            for index, zone in enumerate("ab")
        ]
        return vpc, subnets

    def cluster(self, **more: Any) -> dict[str, Any]:
        _, subnets = self.network()
        role = self.create("iam/role:Role", "role", assumeRolePolicy=EKS_TRUST)
        return self.create(
            "eks/cluster:Cluster",
            "cluster",
            name="dev",
            roleArn=role["arn"],
            vpcConfig={"subnetIds": subnets},
            **{"accessConfig": {"authenticationMode": "API"}, **more},
        )
