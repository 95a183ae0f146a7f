"""Quotas of the project, as Cloud Quotas tells them, against what the stack takes and others use."""

from collections.abc import Mapping
from typing import Any

import pytest

from infra.catalog.gcp import facts
from infra.preflight.answers import Answer, State
from infra.preflight.gcp import quotas
from infra.preflight.gcp_needs import needs
from tests.infra.preflight.gcp.asking import (
    DENIED,
    ID,
    NUMBER,
    Google,
    Said,
    aggregated,
    asked,
    disabled,
    project,
    spec,
)

GET = "cloudquotas.projects.locations.services.quotaInfos.get"
PENDING = "cloudquotas.projects.locations.quotaPreferences.list"
_URL = f"https://www.googleapis.com/compute/v1/projects/{ID}"
OWN = {"trainstack-stack": "dev-gcp"}
PLENTY = 100_000


def infos(allowed: Mapping[str, int]) -> Said:
    """Each quota's value by its key; of all others there is plenty."""
    by_id: dict[tuple[str, str], int] = {}
    for key, row in facts.quotas.items():
        by_id[row.quota_id, row.gpu_family or ""] = allowed.get(key, PLENTY)

    def told(given: Mapping[str, Any]) -> Any:
        *_, service, _, quota_id = str(given["name"]).split("/")
        assert given["name"].startswith(f"projects/{ID}/locations/global/services/")
        rows = [(family, value) for (other, family), value in by_id.items() if other == quota_id]
        regional = next(row.regional for row in facts.quotas.values() if row.quota_id == quota_id)
        made = [
            {
                "dimensions": {
                    **({"region": "us-central1"} if regional else {}),
                    **({"gpu_family": family} if family else {}),
                },
                "details": {"value": str(value)},
                "applicableLocations": ["us-central1" if regional else "global"],
            }
            for family, value in rows
        ]
        other = {
            "dimensions": {"region": "us-east4"},
            "details": {"value": "7"},
            "applicableLocations": ["us-east4"],
        }
        return {
            "quotaId": quota_id,
            "service": service,
            "dimensionsInfos": [*([other] if regional else []), *made],
        }

    return told


def google(allowed: Mapping[str, int] | None = None, **said: Said) -> Google:
    """A project with these quotas, in which others have what `said` tells, by the last word of a method."""
    lists: dict[str, Said] = {"networks": {"items": []}, "filestores": {"instances": []}}
    lists |= {key: aggregated(key, {}) for key in ("instances", "disks", "addresses", "reservations")}
    lists |= said
    return Google(
        {
            GET: infos(allowed or {}),
            PENDING: {"quotaPreferences": []},
            "compute.networks.list": lists["networks"],
            "file.projects.locations.instances.list": lists["filestores"],
            **{
                f"compute.{key}.aggregatedList": lists[key]
                for key in ("instances", "disks", "addresses", "reservations")
            },
        }
    )


def room(made: Google, **changes: Any) -> dict[str, Answer]:
    return {one.check.partition(" ")[2]: one for one in asked(quotas.room, project(made, **changes))}


def machine(type: str, gpus: tuple[str, int] | None = None, zone: str = "us-central1-a", **more: Any) -> Any:
    base = {
        "name": "x",
        "status": "RUNNING",
        "machineType": f"{_URL}/zones/{zone}/machineTypes/{type}",
        **more,
    }
    if gpus:
        url = f"{_URL}/zones/{zone}/acceleratorTypes/{gpus[0]}"
        base["guestAccelerators"] = [{"acceleratorType": url, "acceleratorCount": gpus[1]}]
    return base


def test_a_project_with_room_for_the_stack_at_its_largest() -> None:
    found = room(google())
    assert {one.state for one in found.values()} == {State.READY}
    assert {"h100_mega", "preemptible_l4", "gpus_all_regions", "cpus", "n2_cpus", "ssd_total_gb"} <= {*found}
    assert {"networks", "in_use_addresses", "filestore_gib", "cpus_all_regions"} <= {*found}


def test_a_new_project_is_told_what_to_ask_for() -> None:
    found = room(
        google(
            {"gpus_all_regions": 0, "h100_mega": 0, "preemptible_l4": 1, "ssd_total_gb": 500, "networks": 5}
        )
    )
    assert {key for key, one in found.items() if one.state is State.SHORT} == {
        "gpus_all_regions",
        "h100_mega",
        "preemptible_l4",
        "ssd_total_gb",
        "networks",
    }
    assert found["h100_mega"].said == "H100 Mega GPUs: 32 GPU for h100, 0 used by others, 0 allowed"
    assert found["h100_mega"].fix == (
        f"gcloud beta quotas preferences create --project={ID} --service=compute.googleapis.com "
        "--quota-id=GPUS-PER-GPU-FAMILY-per-project-region --preferred-value=32 "
        "--dimensions=region=us-central1,gpu_family=NVIDIA_H100_MEGA"
    )
    assert found["gpus_all_regions"].fix.endswith(
        "--quota-id=GPUS-ALL-REGIONS-per-project --preferred-value=40"
    )


def test_zero_is_left_out_of_json_and_is_still_zero() -> None:
    made = google()
    row = {"dimensions": {"region": "us-central1"}, "details": {}, "applicableLocations": ["us-central1"]}
    made.said[GET] = {"quotaId": "x", "dimensionsInfos": [row]}
    found = room(made)
    assert found["preemptible_l4"].state is State.SHORT and "0 allowed" in found["preemptible_l4"].said


def test_no_limit_is_minus_one() -> None:
    found = room(google({"n2_cpus": -1}))
    assert found["n2_cpus"].state is State.READY and "any number allowed" in found["n2_cpus"].said
    assert "n2_cpus" not in quotas.left(project(google({"n2_cpus": -1})))


def test_a_row_without_the_family_is_of_all_families_that_have_none() -> None:
    made = google()
    made.said[GET] = {
        "quotaId": "x",
        "dimensionsInfos": [
            {
                "dimensions": {"region": "us-central1", "gpu_family": "NVIDIA_H200"},
                "details": {"value": "64"},
            },
            {"details": {"value": "3"}, "applicableLocations": ["us-east4", "us-central1"]},
        ],
    }
    assert "3 allowed" in room(made)["h100_mega"].said


def test_a_row_of_other_places_is_not_of_this_one() -> None:
    made = google()
    made.said[GET] = {
        "quotaId": "x",
        "dimensionsInfos": [
            {"details": {"value": "99"}, "applicableLocations": ["us-east4"]},
            {"details": {"value": "3"}, "applicableLocations": ["us-central1", "global"]},
        ],
    }
    assert "3 allowed" in room(made)["preemptible_l4"].said


def test_what_others_use_may_leave_too_little() -> None:
    rows: dict[str, Any] = {"zones/us-central1-a": [machine("a3-megagpu-8g", ("nvidia-h100-mega-80gb", 8))]}
    others = aggregated("instances", rows)
    assert room(google({"h100_mega": 40}, instances=others))["h100_mega"].state is State.READY
    short = room(google({"h100_mega": 39}, instances=others))["h100_mega"]
    assert short.state is State.SHORT and "--preferred-value=40" in short.fix


def test_a_pool_without_rdma_has_no_networks_of_its_own() -> None:
    made = spec(layout__pools__0__rdma=False)
    assert [one.name for one in needs(made).most if one.key == "networks"] == ["network"]


def test_a_region_without_a_value_is_unknown() -> None:
    made = google()
    made.said[GET] = {"quotaId": "x", "dimensionsInfos": []}
    assert {one.state for one in room(made).values()} == {State.UNKNOWN}


def test_an_api_that_is_off_leaves_every_quota_unknown() -> None:
    made = google()
    made.said[GET] = disabled("cloudquotas.googleapis.com")
    found = room(made)
    assert {one.state for one in found.values()} == {State.UNKNOWN}
    assert found["h100_mega"].fix == f"gcloud services enable cloudquotas.googleapis.com --project={ID}"


def test_use_that_may_not_be_seen_leaves_its_quota_unknown_and_the_others_told() -> None:
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
    assert "8 GPU for l4, 2 used by others" in found["preemptible_l4"].said
    assert "8 used by others" in found["h100_mega"].said
    assert "40 GPU for h100, l4, 18 used by others" in found["gpus_all_regions"].said
    assert "8 used by others" in found["n2_cpus"].said
    assert "12 used by others" in found["cpus_all_regions"].said  # n2 here, e2 elsewhere; none of g2 and a3
    assert "0 used by others" in found["cpus"].said
    assert "1 used by others" in found["in_use_addresses"].said


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
    assert "40 used by others" in found["h100_mega"].said


def test_disks_addresses_networks_and_shares_of_others() -> None:
    balanced, standard = (
        f"{_URL}/zones/us-central1-a/diskTypes/pd-balanced",
        f"{_URL}/x/diskTypes/pd-standard",
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
    router = f"{_URL}/regions/us-central1/routers/"
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
    assert "150 used by others" in found["ssd_total_gb"].said
    assert "1 used by others" in found["in_use_addresses"].said
    assert "1024 used by others" in found["filestore_gib"].said
    assert "9 network for network, h100, 2 used by others" in found["networks"].said


def test_a_request_that_is_under_way_is_said() -> None:
    made = google({"h100_mega": 0})
    one = {
        "quotaId": "GPUS-PER-GPU-FAMILY-per-project-region",
        "dimensions": {"region": "us-central1", "gpu_family": "NVIDIA_H100_MEGA"},
        "quotaConfig": {"preferredValue": "64"},
        "reconciling": True,
    }
    other = {**one, "dimensions": {"region": "us-east4"}, "quotaConfig": {"preferredValue": "99"}}
    made.said[PENDING] = {"quotaPreferences": [one, other, {**one, "reconciling": False}]}
    assert "a request for 64 is under way" in room(made)["h100_mega"].said
    made.said[PENDING] = DENIED
    assert "under way" not in room(made)["h100_mega"].said


def test_what_is_left_is_the_quotas_without_what_others_use() -> None:
    rows = {"zones/us-central1-a": [machine("a3-megagpu-8g", ("nvidia-h100-mega-80gb", 8))]}
    made = google({"h100_mega": 16, "networks": 5}, instances=aggregated("instances", rows))
    left = quotas.left(project(made))
    assert (left["h100_mega"], left["networks"]) == (8, 5)
    assert NUMBER not in str(made.given(GET))


@pytest.mark.parametrize(
    ("purchase", "keys"),
    [
        ({"kind": "on_demand"}, {"h200", "gpus_all_regions"}),
        ({"kind": "spot"}, {"preemptible_h200", "gpus_all_regions"}),
        ({"kind": "flex_start"}, {"preemptible_h200", "gpus_all_regions"}),
        ({"kind": "queued"}, {"preemptible_h200", "gpus_all_regions"}),
        ({"kind": "reserved", "id": "r"}, set()),
        ({"kind": "block", "id": "r"}, set()),
    ],
)
def test_how_a_pool_is_bought_decides_its_quota(purchase: Any, keys: set[str]) -> None:
    made = spec(layout__pools__0__machine="a3-ultragpu-8g", layout__pools__0__purchase=purchase)
    taken = {one.key: one.amount for one in needs(made).most if one.name == "h100"}
    assert {*taken} - {"networks"} == keys  # Hyperdisk is of no quota of SSDs
    assert taken["networks"] == 2  # gVNIC, and one for all RDMA NICs
    assert set(taken.values()) <= {2, 32}


def test_a_deployment_takes_what_it_validates() -> None:
    now = {(one.key, one.name): one.amount for one in needs(spec()).now}
    assert now["h100_mega", "h100"] == 2 * 8
    assert ("preemptible_l4", "l4") not in now
    without = {(one.key, one.name): one.amount for one in needs(spec(smoke__enabled=False)).now}
    assert ("h100_mega", "h100") not in without
