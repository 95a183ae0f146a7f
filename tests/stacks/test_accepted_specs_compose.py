"""Accepted specs compose: components have no contradicting rules."""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from infra import stackspec
from infra.errors import UserError
from infra.stackspec.document import read
from infra.stackspec.load import CONFIG
from stacks import compose
from tests.components.aws import computed as aws
from tests.components.gcp import computed as gcp
from tests.components.recorder import deploy
from tests.stacks import stack_files_gcp
from tests.stacks.composition import google
from tests.stacks.stack_files import WILD, Values, at, stack_files


def shipped(cloud: str) -> Values:
    """What the shipped environment of a cloud says, as plain values."""
    settings = read(CONFIG / f"Pulumi.dev-{cloud}.yaml", "f")["config"]
    return {name.removeprefix("trainstack:"): value for name, value in settings.items()}


def changed(cloud: str, changes: Mapping[str, Any]) -> Values:
    """The shipped environment with values at paths such as `teams.0.weight`."""
    values = copy.deepcopy(shipped(cloud))
    for path, value in changes.items():
        at(values["spec"], path, value)
    return values


def outcome(values: Values) -> str:
    """What becomes of a stack file: `refused` by the spec, or `composed`; components refuse nothing.

    What is composed on Google Cloud is also what the preflight asks permissions for.
    """
    try:
        loaded = stackspec.load(f"dev-{values['cloud']}", values, "f")
    except UserError:
        return "refused"

    def program() -> Mapping[str, pulumi.Output[Any]]:
        compose(loaded.spec)
        return {}

    made, _ = deploy(program, {**aws.COMPUTED, **gcp.COMPUTED})
    if values["cloud"] == "gcp":
        google.permissions_are_those_of(made.types(), loaded.spec)
    return "composed"


# Composing takes seconds: values that are accepted and do not depend on each other are composed at once. The
# shipped environments as they are: tests/stacks/composition.
AWS: dict[str, tuple[dict[str, Any], str]] = {
    "every GPU promised without a gate": (
        {"smoke.enabled": False, "smoke.schedule": None, "teams.0.gpus": {"a100": 24, "l4": 2}},
        "composed",
    ),
    "every GPU promised beside a gate": ({"teams.0.gpus": {"a100": 24, "l4": 2}}, "refused"),
    "the largest weight, a shared range and a system type on Graviton": (
        {
            "teams.0.weight": 1000,
            "layout.network_cidr": "100.64.0.0/16",
            "layout.system_pool.machine": "m7g.xlarge",
        },
        "composed",
    ),
    "a weight beyond it": ({"teams.0.weight": 5000}, "refused"),
    "DRA on a recent Kubernetes in the smallest range": (
        {"on.efa_driver": "dra", "layout.pools.0.min_nodes": 1, "layout.network_cidr": "10.0.0.0/20"},
        "composed",
    ),
    "DRA in a pool that starts empty": ({"on.efa_driver": "dra"}, "refused"),
    "DRA on an older Kubernetes": (
        {"on.efa_driver": "dra", "layout.pools.0.min_nodes": 1, "layout.kubernetes_version": "1.34"},
        "refused",
    ),
    "an address twice": ({"budget.alert_emails": ["a@example.com", "a@example.com"]}, "refused"),
    "eleven addresses": ({"budget.alert_emails": [f"a{n}@example.com" for n in range(11)]}, "refused"),
    "a budget without end": ({"budget.anomaly_usd": float("inf")}, "refused"),
    "the loopback range": ({"layout.network_cidr": "127.0.0.0/16"}, "refused"),
    "a link-local range": ({"layout.network_cidr": "169.254.0.0/16"}, "refused"),
    "the range that AWS services use": ({"layout.network_cidr": "172.17.0.0/16"}, "refused"),
    "a pool zone twice": ({"layout.pools.0.zones": ["us-east-1b", "us-east-1b"]}, "refused"),
    "a pool larger than EKS manages": ({"layout.pools.1.max_nodes": 451}, "refused"),
    "a period that CloudWatch does not know": ({"data.log_retention_days": 100}, "refused"),
    "a misspelt endpoint": ({"on.endpoints": ["ecr.drk"]}, "refused"),
    "an endpoint twice": ({"on.endpoints": ["sts", "sts"]}, "refused"),
    "a system type that does not exist": ({"layout.system_pool.machine": "m6i.xlrge"}, "refused"),
    "a GPU type in more zones than offer it": (
        {
            "layout.zones": [f"us-east-1{letter}" for letter in "abcde"],
            "layout.pools.0.zones": [f"us-east-1{letter}" for letter in "abcde"],
            "layout.pools.0.rdma": False,
        },
        "refused",
    ),
    "a session as administrator": (
        {"on.admin_arns": ["arn:aws:sts::123456789012:assumed-role/platform/me"]},
        "refused",
    ),
}


_A3 = {
    "layout.pools.0.machine": "a3-ultragpu-8g",
    "layout.pools.0.zones": ["us-central1-b"],
    "layout.pools.0.rdma": True,
    "on.pools": {},
}
_LUSTRE = {"capacity_gib": 18000, "throughput_mb_s_per_tib": 500, "zone": "us-central1-b"}
_A4X = {**_A3, "layout.pools.0.machine": "a4x-maxgpu-4g-metal", "teams.0.gpus": {}}
_RESERVED = {"kind": "reserved", "id": "projects/example-ml-dev/reservations/r1"}
_TURNS = {
    "on.pools.l4.sharing": {"kind": "time_sharing", "clients": 2},
    "layout.pools.1.own_queue": True,
    "teams.0.gpus": {},
    "teams.1.gpus": {"a100": 8},
    "teams.2.gpus": {},
}
GCP: dict[str, tuple[dict[str, Any], str]] = {
    "every GPU promised without a gate": (
        {"smoke.enabled": False, "smoke.schedule": None, "teams.0.gpus": {"a100": 24, "l4": 2}},
        "composed",
    ),
    "every GPU promised beside a gate": ({"teams.0.gpus": {"a100": 24, "l4": 2}}, "refused"),
    "as many turns promised as there are": (
        {**_TURNS, "teams.0.shares": {"l4": 16}},
        "composed",
    ),
    "more turns promised than there are": (
        {**_TURNS, "teams.0.shares": {"l4": 17}},
        "refused",
    ),
    "an address twice": ({"budget.alert_emails": ["a@example.com", "a@example.com"]}, "refused"),
    "five addresses, a shared range, the longest and shortest periods, a system type with Hyperdisk": (
        {
            "budget.alert_emails": [f"a{n}@example.com" for n in range(5)],
            "layout.network_cidr": "100.64.0.0/18",
            "layout.system_pool.machine": "n4-standard-4",
            "layout.idle_minutes": 30,
            "data.log_retention_days": 3650,
            "data.noncurrent_days": 90,
        },
        "composed",
    ),
    "six addresses": ({"budget.alert_emails": [f"a{n}@example.com" for n in range(6)]}, "refused"),
    "a budget without end": ({"budget.monthly_usd": float("inf")}, "refused"),
    "a link-local range": ({"layout.network_cidr": "169.254.0.0/16"}, "refused"),
    "the range that Cloud SQL uses": ({"layout.network_cidr": "172.17.0.0/16"}, "refused"),
    # 2048 addresses: 16 nodes of 64 and 6 of the system of 128 are 1792.
    "a range that just holds its pods, and datasets as files": (
        {"layout.network_cidr": "10.0.0.0/19", "on.dataset_claims": True, "on.dataset_cache": True},
        "composed",
    ),
    "a range that holds pods but not those of the system": (
        {"layout.network_cidr": "10.0.0.0/19", "layout.system_pool.max_nodes": 36},
        "refused",
    ),
    "a pool larger than GKE has": (
        {"layout.network_cidr": "10.0.0.0/16", "on.pods_per_node": 8, "layout.pools.2.max_nodes": 1001},
        "refused",
    ),
    "a zone twice": ({"layout.pools.0.zones": ["us-central1-c", "us-central1-c"]}, "refused"),
    "logs for longer than Cloud Logging keeps them": ({"data.log_retention_days": 3653}, "refused"),
    "deleted objects for shorter than Cloud Storage": ({"data.noncurrent_days": 6}, "refused"),
    "deleted objects for longer than Cloud Storage": ({"data.noncurrent_days": 91}, "refused"),
    "a system type that does not exist": ({"layout.system_pool.machine": "e2-standart-4"}, "refused"),
    "a system type with GPUs": ({"layout.system_pool.machine": "g2-standard-8"}, "refused"),
    "networks by GKE": (_A3, "composed"),
    "networks by hand": ({**_A3, "on.accelerator_networks": "classic"}, "composed"),
    "networks by hand that only GKE makes": ({**_A4X, "on.accelerator_networks": "classic"}, "refused"),
    "networks by GKE of an old version": ({**_A3, "layout.kubernetes_version": "1.33"}, "refused"),
    "RDMA and a policy that places nodes": ({**_A3, "on.pools": {"a100": {"compact": True}}}, "refused"),
    "a reservation and such a policy": ({"layout.pools.0.purchase": _RESERVED}, "refused"),
    "a reservation": ({"layout.pools.0.purchase": _RESERVED, "on.pools": {}}, "composed"),
    "shared GPUs where people train": (
        {"on.pools.a100.sharing": {"kind": "mig", "partition": "1g.5gb"}},
        "refused",
    ),
    "a partition of another GPU": (
        {"on.pools.l4.sharing": {"kind": "mig", "partition": "1g.5gb"}},
        "refused",
    ),
    "groups of two domains": (
        {"teams.0.members": ["group:a@one.example"], "teams.1.members": ["group:b@two.example"]},
        "refused",
    ),
    "ranges at a name": ({"layout.api_access": ["198.51.100.0/24"]}, "refused"),
    "an address without ranges": ({"on.endpoint": "ip"}, "refused"),
    "datasets as files beside Lustre": ({"on.dataset_claims": True, "data.shared_fs": _LUSTRE}, "refused"),
}
CASES = [("aws", case) for case in AWS] + [("gcp", case) for case in GCP]


@pytest.mark.parametrize(("cloud", "case"), CASES)
def test_spec_and_components_agree(cloud: str, case: str) -> None:
    changes, expected = {"aws": AWS, "gcp": GCP}[cloud][case]
    assert outcome(changed(cloud, changes)) == expected


@pytest.mark.parametrize("files", [stack_files, stack_files_gcp.stack_files], ids=["aws", "gcp"])
@pytest.mark.parametrize("examples", [12, pytest.param(40, marks=pytest.mark.more)])
def test_whatever_the_spec_accepts_is_composed(
    files: Callable[[], SearchStrategy[Values]], examples: int
) -> None:
    outcomes: Counter[str] = Counter()

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(values=files())
    def check(values: Values) -> None:
        outcomes[outcome(values)] += 1

    check()
    assert min(outcomes["composed"], outcomes["refused"]) >= examples // 12, outcomes


def test_random_files_reach_every_field_that_both_a_rule_and_a_component_read() -> None:
    """Of both clouds alike, but for what only one has."""
    common = {path for path in WILD if not path.startswith("on.")}
    assert common - set(stack_files_gcp.WILD) == {"cost_center", "expires_on"}
