"""Use of the project's quotas by others, without that of the stack."""

from typing import Any

from tests.trainstack.preflight.gcp.asking import DENIED, ID, aggregated
from tests.trainstack.preflight.gcp.quota_answers import URL, google, machine, room
from trainstack.preflight.answers import State

OWN = {"trainstack-stack": "dev-gcp"}


def test_unreadable_use_leaves_only_its_quota_unknown() -> None:
    found = room(google(disks=DENIED))
    assert found["ssd_total_gb"].state is State.UNKNOWN
    assert "compute.disks.list" in found["ssd_total_gb"].fix
    assert found["h100_mega"].state is State.READY


def test_what_others_use_counts_and_what_the_stack_itself_has_does_not() -> None:
    l4 = ("nvidia-l4", 1)
    rows: dict[str, Any] = {
        "zones/us-central1-a": [
            machine("g2-standard-12", l4, scheduling={"provisioningModel": "SPOT"}),
            machine("g2-standard-12", l4, scheduling={"provisioningModel": "FLEX_START"}),
            machine("g2-standard-12", l4, scheduling={"provisioningModel": "SPOT"}, labels=OWN),
            machine("g2-standard-12", l4, scheduling={"provisioningModel": "SPOT"}, status="TERMINATED"),
            machine("a3-megagpu-8g", ("nvidia-h100-mega-80gb", 8)),
            machine("n2-standard-8", networkInterfaces=[{"accessConfigs": [{"natIP": "192.0.2.7"}]}]),
            machine("n2-standard-8", labels={"goog-k8s-cluster-name": "dev-gcp"}),
        ],
        "zones/us-east4-a": [
            machine("a3-highgpu-8g", ("nvidia-h100-80gb", 8), "us-east4-a"),
            machine("e2-standard-4"),
        ],
    }
    found = room(google(instances=aggregated("instances", rows)))
    assert "for l4, 2 used" in found["preemptible_l4"].text
    assert "8 used" in found["h100_mega"].text
    assert "h100, l4, 18 used" in found["gpus_all_regions"].text
    assert "8 used" in found["n2_cpus"].text
    assert "12 used" in found["cpus_all_regions"].text  # n2 here, e2 elsewhere; none of g2 and a3
    assert "0 used" in found["cpus"].text
    assert "1 used" in found["in_use_addresses"].text


def test_what_is_reserved_holds_quota_whether_it_runs_or_not() -> None:
    what: dict[str, Any] = {
        "machineType": "a3-megagpu-8g",
        "guestAccelerators": [{"acceleratorType": "nvidia-h100-mega-80gb", "acceleratorCount": 8}],
    }
    specific = {"count": "4", "inUseCount": "3", "instanceProperties": what}
    rows: list[Any] = [
        {"name": "a", "specificReservationRequired": True, "specificReservation": specific},
        {"name": "b", "specificReservation": specific},
    ]
    runs = machine(
        "a3-megagpu-8g",
        ("nvidia-h100-mega-80gb", 8),
        reservationAffinity={"consumeReservationType": "SPECIFIC_RESERVATION"},
    )
    found = room(
        google(
            reservations=aggregated("reservations", {"zones/us-central1-a": rows}),
            instances=aggregated("instances", {"zones/us-central1-a": [runs]}),
        )
    )
    # All of the first, whose machine is not counted again; of the second what is idle.
    assert "40 used" in found["h100_mega"].text


def test_disks_addresses_networks_and_shares_of_others() -> None:
    balanced, standard = (
        f"{URL}/zones/us-central1-a/diskTypes/pd-balanced",
        f"{URL}/x/diskTypes/pd-standard",
    )
    disks: dict[str, Any] = {
        "zones/us-central1-a": [
            {"name": "a", "sizeGb": "100", "type": balanced},
            {"name": "b", "sizeGb": "100", "type": standard},
            {"name": "c", "sizeGb": "100", "type": balanced, "labels": OWN},
        ],
        "zones/us-east4-a": [{"name": "d", "sizeGb": "100", "type": balanced}],
        "regions/us-central1": [{"name": "e", "sizeGb": "50", "type": balanced}],
    }
    router = f"{URL}/regions/us-central1/routers/"
    addresses: dict[str, Any] = {
        "regions/us-central1": [
            {
                "address": "192.0.2.1",
                "addressType": "EXTERNAL",
                "status": "IN_USE",
                "users": [f"{router}other"],
            },
            {
                "address": "192.0.2.2",
                "addressType": "EXTERNAL",
                "status": "IN_USE",
                "users": [f"{router}dev-gcp-1"],
            },
            {"address": "192.0.2.3", "addressType": "EXTERNAL", "status": "RESERVED"},
            {"address": "10.0.0.3", "addressType": "INTERNAL", "status": "IN_USE"},
        ]
    }
    share: dict[str, Any] = {"fileShares": [{"name": "homes", "capacityGb": "1024"}], "tier": "REGIONAL"}
    shares = [
        {"name": f"projects/{ID}/locations/us-central1/instances/a", **share},
        {"name": f"projects/{ID}/locations/us-central1/instances/b", **share, "labels": OWN},
        {"name": f"projects/{ID}/locations/us-east4/instances/c", **share},
        {"name": f"projects/{ID}/locations/us-central1-a/instances/d", **share, "tier": "BASIC_HDD"},
    ]
    names = ("default", "dev-gcp-network-1a2b3c4", "dev-gcp2")
    found = room(
        google(
            disks=aggregated("disks", disks),
            addresses=aggregated("addresses", addresses),
            filestores={"instances": shares},
            networks={"items": [{"name": name} for name in names]},
        )
    )
    assert "150 used" in found["ssd_total_gb"].text
    assert "1 used" in found["in_use_addresses"].text
    assert "1024 used" in found["filestore_gib"].text
    assert "h100, 2 used" in found["networks"].text
