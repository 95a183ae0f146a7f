"""Inputs that Google Cloud accepts and that the rehearsal once refused."""

from typing import Any

import pytest

from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.rules.examples.data import lustre, sql
from tests.rehearsal.gcp.rules.examples.fabrics import networks
from tests.rehearsal.gcp.rules.examples.pools import CLUSTERS, pool

MEMBER, CONNECTION = "projects/iAMMember:IAMMember", "servicenetworking/connection:Connection"


@pytest.mark.parametrize(
    "member",
    [
        "projectOwner:research",
        "projectEditor:research",
        "projectViewer:research",
        "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/subject/s",
        "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*",
    ],
)
def test_every_kind_of_member(google: Driver, member: str) -> None:
    assert google.check(MEMBER, project="research", role="roles/viewer", member=member) == {}


@pytest.mark.parametrize(
    "member",
    [
        "users:a@example.com",
        "projectReader:research",
        "serviceAccounts:a@b",
    ],
)
def test_a_misspelt_kind_of_member_is_refused(google: Driver, member: str) -> None:
    found = google.check(MEMBER, project="research", role="roles/viewer", member=member)
    assert "GCP-IAM-002" in found["member"]


def test_the_provider_refuses_a_deleted_member(google: Driver) -> None:
    found = google.check(MEMBER, project="research", role="roles/viewer", member="deleted:user:a@b?uid=1")
    assert found.keys() == {"member"}


def test_a_connection_of_the_host_project_serves_a_shared_vpc(google: Driver) -> None:
    """Of a Shared VPC, network and connection are in the host project, instances in a service project."""
    google.config["project"] = "host"
    link = google.create("compute/network:Network", "net", name="net", autoCreateSubnetworks=False)["id"]
    google.create(
        "compute/globalAddress:GlobalAddress",
        "range",
        name="peer",
        purpose="VPC_PEERING",
        addressType="INTERNAL",
        prefixLength=16,
        network=link,
    )
    google.config["project"] = "research"
    private: dict[str, Any] = {"ipv4Enabled": False, "privateNetwork": link}
    with pytest.raises(Exception, match="GCP-SQL-003"):
        google.create(
            "sql/databaseInstance:DatabaseInstance",
            "db",
            **sql(tier="db-custom-1-3840", ipConfiguration=private),
        )
    google.config["project"] = "host"
    google.create(
        CONNECTION,
        "psa",
        network=link,
        service="servicenetworking.googleapis.com",
        reservedPeeringRanges=["projects/host/global/addresses/peer"],
    )
    google.config["project"] = "research"
    google.create(
        "sql/databaseInstance:DatabaseInstance",
        "db",
        **sql(tier="db-custom-2-7680", edition="ENTERPRISE", ipConfiguration=private),
    )
    google.create("lustre/instance:Instance", "fast", **lustre(network=link))


@pytest.mark.parametrize("count", [4, 9])
def test_another_number_of_gpu_networks_is_a_warning(google: Driver, count: int) -> None:
    for token, name, made in CLUSTERS:
        google.create(token, name, **made)
    asked = pool({"machineType": "a3-megagpu-8g"}, **networks(count))
    for one in asked["networkConfig"]["additionalNodeNetworkConfigs"]:
        one["network"] = "projects/other/global/networks/gpu"
        one["subnetwork"] = f"projects/other/regions/us-central1/subnetworks/{one['subnetwork']}"
    google.create("container/nodePool:NodePool", "gpus", location="us-central1", **asked)
    (said,) = google.said
    assert "GCP-GPU-003" in said and f"not {count}" in said
