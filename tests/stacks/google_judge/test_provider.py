"""The provider's rules accept every resource of the shipped stacks, and refuse a mutation of each kind."""

import copy
from typing import Any

import pytest

from rehearsal.core.properties import at, steps
from rehearsal.core.schema import Schemas
from rehearsal.core.validate import validate
from rehearsal.gcp.provider import facts
from rehearsal.gcp.rules import BOOK
from tests.stacks.google_judge.shipped import STACKS, requested

CLUSTER, POOL, SQL = (
    "container/cluster:Cluster",
    "container/nodePool:NodePool",
    "sql/databaseInstance:DatabaseInstance",
)


def problems(token: str, inputs: Any, schemas: Schemas) -> list[str]:
    schema = schemas.resource(f"gcp:{token}")
    assert schema is not None and token in facts(), token
    found = [f"{one.property}: {one.reason}" for one in validate(schema, inputs)]
    return [*found, *(f"{one.path}: {one.message}" for _, one in BOOK.broken_alone(f"gcp:{token}", inputs))]


@pytest.mark.parametrize("stack", STACKS)
def test_every_resource_is_accepted(stack: str, schemas: Schemas) -> None:
    asked = requested(stack)
    found = {f"{token} {name}": problems(token, inputs, schemas) for token, name, inputs in asked}
    assert len(asked) >= 90
    assert {name: said for name, said in found.items() if said} == {}


Mutation = tuple[str, str, str, Any, str]
# (stack, type, path, value, path at which it is refused, if another)
MUTATIONS: list[Mutation] = [
    # a word that the provider does not know
    ("dev-gcp", CLUSTER, "releaseChannel.channel", "FAST", ""),
    ("dev-gcp", CLUSTER, "maintenancePolicy.maintenanceExclusions[0].exclusionOptions.scope", "NO_NODES", ""),
    ("prod-gcp", POOL, "upgradeSettings.strategy", "ROLLING", ""),
    ("small-gcp", "cloudrunv2/service:Service", "template.vpcAccess.egress", "PRIVATE", ""),
    # a number out of its range
    ("small-gcp", SQL, "settings.maintenanceWindow.day", 8, ""),
    ("dev-gcp", POOL, "autoscaling.totalMinNodeCount", -1, ""),
    # a name or value that does not match its pattern
    ("dev-gcp", CLUSTER, "name", "Dev", ""),
    ("dev-gcp", "compute/network:Network", "name", "dev_network", ""),
    ("small-gcp", "serviceaccount/account:Account", "accountId", "short", ""),
    ("dev-gcp", CLUSTER, "maintenancePolicy.recurringWindow.startTime", "2:00", ""),
    ("small-gcp", "storage/managedFolder:ManagedFolder", "name", "teams/vision", ""),
    ("dev-gcp", "storage/bucket:Bucket", "labels", {"Team": "vision"}, ""),
    ("small-gcp", "kms/cryptoKey:CryptoKey", "rotationPeriod", "3600s", ""),
    # a pair that excludes each other
    ("dev-gcp", CLUSTER, "ipAllocationPolicy.clusterIpv4CidrBlock", "/16", ""),
    ("dev-gcp", CLUSTER, "enableAutopilot", False, "removeDefaultNodePool"),
    ("dev-gcp", "compute/firewall:Firewall", "denies", [{"protocol": "tcp"}], "allows"),
    # a property without its partner
    ("small-gcp", SQL, "rootPasswordWo", "secret", ""),
    # a group of which none is set
    ("dev-gcp", "secretmanager/secret:Secret", "replication", {}, ""),
    # an unknown property, a value of another type
    ("dev-gcp", POOL, "nodeConfig.machine", "a3-highgpu-8g", ""),
    ("dev-gcp", POOL, "nodeConfig.taints", {"key": "x"}, ""),
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{one[1]} {one[2]}" for one in MUTATIONS])
def test_a_mutation_is_refused(mutation: Mutation, schemas: Schemas) -> None:
    stack, token, path, value, refused = mutation
    inputs = next(properties for kind, _, properties in requested(stack) if kind == token)
    *above, last = steps(path)
    changed: Any = copy.deepcopy(inputs)
    block = changed
    for step in above:
        block = block.setdefault(step, {}) if isinstance(block, dict) else block[step]
    block[last] = value
    assert at(changed, path) == value and problems(token, inputs, schemas) == []
    assert [one for one in problems(token, changed, schemas) if one.startswith(refused or path)]
