"""Functions of the Google provider about regions, subnetworks, tokens, addresses and registries."""

from typing import Any

from tests.rehearsal.driver import refused
from tests.rehearsal.gcp.harness import Driver


def ask(google: Driver, token: str, /, **args: object) -> dict[str, object]:
    return google.invoke(f"{token}:{token.rpartition('/')[2]}", **args)


def test_lists_of_places_and_subnetworks(google: Driver) -> None:
    regions = ask(google, "compute/getRegions")["names"]
    assert isinstance(regions, list) and "us-central1" in regions
    network = google.create("compute/network:Network", "n", name="net", autoCreateSubnetworks=False)
    for name in ("a", "b"):
        block = f"10.{ord(name)}.0.0/20"
        google.create(
            "compute/subnetwork:Subnetwork", name, name=name, network=network["id"], ipCidrRange=block,
            region="us-central1",
        )  # fmt: skip
    rows = ask(google, "compute/getSubnetworks", region="us-central1", filter="name=b")["subnetworks"]
    assert isinstance(rows, list) and [row["ipCidrRange"] for row in rows] == ["10.98.0.0/20"]
    assert ask(google, "compute/getSubnetworks", region="europe-west4")["subnetworks"] == []
    refused("NotEmulated", ask, google, "compute/getSubnetworks", region="us-central1", filter="a AND b")


def test_addresses_and_tokens(google: Driver) -> None:
    assert ask(google, "compute/getNetblockIPRanges", rangeType="iap-forwarders")["cidrBlocks"] == [
        "35.235.240.0/20"
    ]
    refused("NotEmulated.*change", ask, google, "compute/getNetblockIPRanges", rangeType="google-netblocks")
    account = "ci@p.iam.gserviceaccount.com"
    token = ask(google, "serviceaccount/getAccountAccessToken", targetServiceAccount=account, scopes=["x"])
    assert str(token["accessToken"]).startswith("ya29.")
    url = ask(google, "storage/getObjectSignedUrl", bucket="b", path="a/c")["signedUrl"]
    assert str(url).startswith("https://storage.googleapis.com/b/a/c?")


def test_registries(google: Driver) -> None:
    where: dict[str, Any] = {"location": "us-central1", "repositoryId": "train"}
    wanted = {**where, "imageName": "model:v1"}
    refused("notFound", ask, google, "artifactregistry/getDockerImage", **wanted)
    google.create("artifactregistry/repository:Repository", "r", format="DOCKER", **where)
    link = str(ask(google, "artifactregistry/getDockerImage", **wanted)["selfLink"])
    assert link.startswith("us-central1-docker.pkg.dev/") and "/train/model@sha256:" in link
    image = ask(google, "container/getRegistryImage", name="model", tag="v1", project="shop")["imageUrl"]
    assert image == "gcr.io/shop/model:v1"


def test_what_is_above_the_project_is_refused_with_a_way_out(google: Driver) -> None:
    refused("NotEmulated.*setting", ask, google, "organizations/getOrganization", domain="example.com")
    refused("NotEmulated.*setting", ask, google, "organizations/getBillingAccount", displayName="main")


def test_types_without_a_table_are_found_by_name(google: Driver) -> None:
    google.create("dns/managedZone:ManagedZone", "z", name="zone", dnsName="example.com.")
    assert ask(google, "dns/getManagedZone", name="zone")["dnsName"] == "example.com."
    refused("NotEmulated", ask, google, "dns/getManagedZone", name="other")
