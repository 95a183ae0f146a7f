"""A database of PostgreSQL with a private address alone."""

from typing import Any

from tests.rehearsal.gcp.harness import Driver


def private_network(google: Driver, **connection: Any) -> str:
    """The link of a network with a connection to the services of Google."""
    link = google.create("compute/network:Network", "net", name="net", autoCreateSubnetworks=False)["id"]
    google.create(
        "compute/globalAddress:GlobalAddress",
        "range",
        name="peer",
        purpose="VPC_PEERING",
        addressType="INTERNAL",
        prefixLength=20,
        network=link,
    )
    made = google.create(
        "servicenetworking/connection:Connection",
        "psa",
        network=link,
        service="servicenetworking.googleapis.com",
        reservedPeeringRanges=["peer"],
        **connection,
    )
    assert made["id"].endswith("%2Fglobal%2Fnetworks%2Fnet:servicenetworking.googleapis.com")
    return str(link)


def database(google: Driver, link: str) -> dict[str, Any]:
    """The instance `tracking` in a network."""
    return google.create(
        "sql/databaseInstance:DatabaseInstance",
        "db",
        name="tracking",
        databaseVersion="POSTGRES_16",
        deletionProtection=False,
        settings={
            "tier": "db-custom-2-7680",
            "edition": "ENTERPRISE",
            "ipConfiguration": {"ipv4Enabled": False, "privateNetwork": link},
        },
    )
