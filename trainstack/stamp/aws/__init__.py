"""Files of new clients on AWS."""

import re
from collections.abc import Mapping
from typing import Any

from infra.catalog.aws import facts
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from trainstack.bootstrap.trust import RESERVED
from trainstack.stamp.cloud import StampedCloud, Zones


def _pool_zones(shipped: Zones, offered: Zones) -> Zones:
    """As many as offer the machine: ids of zones, which facts have, are not the names of an account."""
    return shipped[: len(offered)] or shipped


def _substitute(body: str, region: str) -> str:
    """Machines with A10G where the region has none with L4: both have 24 GB."""
    for machine in sorted(set(re.findall(r"machine: (?:ml\.)?(g6\.\w+)", body))):
        other = machine.replace("g6", "g5")
        if not facts.offering_zones(machine, region) and facts.offering_zones(other, region):
            body = re.sub(
                rf"(?m)^(\s+machine: (?:ml\.)?){machine} #.*$",
                rf"\g<1>{other} # {region} has no {machine}; A10G instead of L4, 24 GB each, too",
                body,
            )
            body = re.sub(r"\bl4(?=\b|x)", "a10g", body)
    return body


def _accelerator(machine: str) -> str:
    found = facts.instance_types.get(machine)
    return found.accelerator if found else ""


def _account_answers(spec: StackSpec) -> Mapping[str, Mapping[str, Any]]:
    assert isinstance(spec.on, AwsSpec)
    account = spec.on.account_id
    caller = {"id": account, "accountId": account, "arn": f"arn:aws:iam::{account}:role/deployer"}
    return {"aws:index/getCallerIdentity:getCallerIdentity": caller}


STAMPED = StampedCloud(
    shipped={
        "small": "small-aws",
        "small-cluster": "small-eks-aws",
        "medium": "dev-aws",
        "large-slurm": "large-slurm-aws",
    },
    account_key="account_id",
    account=re.compile(r"[0-9]{12}"),
    account_rule="must be the 12 digits of an AWS account",
    account_example="111122223333",
    regions=facts.regions,
    offering_zones=facts.offering_zones,
    pool_zones=_pool_zones,
    training_zone=lambda replaced, _: replaced[0],
    accelerator=_accelerator,
    substitute=_substitute,
    account_answers=_account_answers,
    reserved=RESERVED,
    cluster_locks=("awscli.lock",),
    jobs_prefix="ml.",
    rdma=True,
)
