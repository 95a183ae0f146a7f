"""Zones, machine types, GPUs and versions, as the project is offered them."""

from collections.abc import Mapping
from typing import Any

import pytest

from infra.catalog.gcp import facts
from tests.trainstack.preflight.gcp.asking import (
    DENIED,
    ID,
    Google,
    aggregated,
    asked,
    project,
    refused,
    states,
)
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import places, versions

TYPES, GPUS, ZONES = (
    "compute.machineTypes.aggregatedList",
    "compute.acceleratorTypes.aggregatedList",
    "compute.zones.list",
)
CONFIG = "container.projects.locations.getServerConfig"
SCHEDULER = "cloudscheduler.projects.locations.list"
_URL = f"https://www.googleapis.com/compute/v1/projects/{ID}"
OFFERED = {
    "us-central1-a": ["e2-standard-4", "a3-megagpu-8g", "g2-standard-12", "n2-standard-16"],
    "us-central1-b": ["e2-standard-4", "g2-standard-12", "n2-standard-16"],
}


def zones(**status: str) -> Any:
    names = {"us-central1-a": "UP", "us-central1-b": "UP", "us-east4-a": "UP", **status}
    rows = [
        {"name": name, "status": one, "region": f"{_URL}/regions/{name[:-2]}", "kind": "compute#zone"}
        for name, one in names.items()
    ]
    return Google({ZONES: {"items": rows}})


def types(offered: dict[str, list[str]] = OFFERED, **more: Any) -> Google:
    rows = {
        f"zones/{zone}": [{"name": name, "zone": zone, "guestCpus": 4, **more} for name in names]
        for zone, names in offered.items()
    }
    return Google({TYPES: aggregated("machineTypes", rows)})


def test_zones_of_the_region_that_are_up() -> None:
    (answer,) = asked(places.zones, project(zones()))
    assert answer.state is State.READY and answer.text == "us-central1-a, us-central1-b"


def test_a_zone_that_is_down_or_of_another_region() -> None:
    found = asked(
        places.zones, project(zones(**{"us-central1-b": "DOWN"}), layout__pools__2__zones=["us-east4-a"])
    )
    assert [one.text.split()[0] for one in found] == ["us-central1-b", "us-east4-a"]
    assert found[0].fix == "us-central1 has us-central1-a."


def scheduler(*regions: str) -> Google:
    prefix = f"projects/{ID}/locations"
    rows = [{"locationId": one, "name": f"{prefix}/{one}"} for one in regions]
    half = len(rows) // 2

    def page(given: Mapping[str, Any]) -> Mapping[str, Any]:
        if "pageToken" in given:
            return {"locations": rows[half:]}
        return {"locations": rows[:half], "nextPageToken": "more"}

    return Google({SCHEDULER: page})


def test_cloud_scheduler_is_where_lustre_is_copied() -> None:
    (answer,) = asked(places.scheduler, project(scheduler("us-central1", "us-east1")))
    assert answer.state is State.READY
    (answer,) = asked(places.scheduler, project(scheduler("us-west1", "us-east1")))
    assert answer.state is State.SHORT
    assert answer.text.startswith("data.shared_fs ") and answer.text.endswith(" us-central1")
    assert answer.fix.endswith(": us-east1, us-west1.")


def test_who_has_nothing_that_cloud_scheduler_starts_is_not_asked_for_it() -> None:
    assert asked(places.scheduler, project(Google(), data__shared_fs=None)) == []


@pytest.mark.parametrize(
    ("machine", "kind", "expected"),
    [
        ("a3-megagpu-8g", "on_demand", [State.READY]),
        # Such a spec is refused when it is loaded; an older one may be deployed.
        ("a4-highgpu-8g", "on_demand", [State.SHORT]),
        ("g4-standard-12", "spot", [State.NOTE]),
        ("n2-standard-16", "spot", [State.READY]),
    ],
)
def test_ways_to_buy_are_those_of_the_catalog(machine: str, kind: str, expected: list[State]) -> None:
    changes = {"layout__pools__0__machine": machine, "layout__pools__0__purchase": {"kind": kind}}
    found = asked(places.purchases, project(Google(), **changes))
    assert states(found) == expected
    assert all(machine in one.text and kind in one.text for one in found)
    assert expected[0] is not State.SHORT or all(way in found[0].fix for way in facts.sales[machine].ways)


def test_types_that_are_offered_in_all_their_zones() -> None:
    google = types()
    (answer,) = asked(places.types, project(google))
    assert answer.state is State.READY
    (given,) = google.given(TYPES)
    assert '(name = "a3-megagpu-8g") OR (name = "e2-standard-4")' in given["filter"]


def test_a_missing_type_is_reported_with_zones_that_offer_it() -> None:
    found = asked(places.types, project(types(), layout__pools__0__zones=["us-central1-b"]))
    assert states(found) == [State.SHORT]
    assert {"layout.pools[0]:", "a3-megagpu-8g", "us-central1-b"} <= {*found[0].text.split()}
    assert "us-central1-a" in found[0].fix


def test_a_type_that_may_no_longer_be_made_is_not_offered() -> None:
    found = asked(places.types, project(types(deprecated={"state": "OBSOLETE"})))
    assert {one.state for one in found} == {State.SHORT}


def test_a_zone_that_did_not_answer_is_unknown_and_not_absent() -> None:
    said = aggregated("machineTypes", {})
    said["items"]["zones/us-central1-a"] = {"warning": {"code": "UNREACHABLE", "message": "zone is down"}}
    (answer,) = asked(places.types, project(Google({TYPES: said})))
    assert answer.state is State.UNKNOWN and "us-central1-a: UNREACHABLE" in answer.text
    (answer,) = asked(
        places.types, project(Google({TYPES: {"items": {}, "unreachables": ["zones/us-central1-a"]}}))
    )
    assert answer.state is State.UNKNOWN and "IncompleteAnswer" in answer.text


def test_gpus_are_asked_for_by_their_own_names() -> None:
    rows = {"zones/us-central1-a": [{"name": "nvidia-h100-mega-80gb"}, {"name": "nvidia-l4"}]}
    google = Google({GPUS: aggregated("acceleratorTypes", rows)})
    found = asked(places.accelerators, project(google))
    assert [one.text.split()[:2] for one in found] == [["layout.pools[1]:", "nvidia-l4"]]
    (answer,) = asked(places.accelerators, project(Google({GPUS: DENIED})))
    assert answer.state is State.UNKNOWN and "compute.acceleratorTypes.list" in answer.fix


def version(wanted: str, **channels: list[str]) -> Any:
    rows = [
        {"channel": name.upper(), "defaultVersion": (valid or ["1.30.1-gke.1"])[-1], "validVersions": valid}
        for name, valid in channels.items()
    ]
    google = Google({CONFIG: {"channels": rows, "validMasterVersions": ["1.36.0-gke.100"]}})
    (answer,) = asked(versions.kubernetes, project(google, layout__kubernetes_version=wanted))
    assert google.given(CONFIG) == [{"name": f"projects/{ID}/locations/us-central1"}]
    return answer


def test_a_version_that_the_channel_offers() -> None:
    answer = version("1.35", regular=["1.35.3-gke.1389002", "1.35.10-gke.100", "1.34.9-gke.7"])
    assert answer.state is State.READY
    assert "1.35.10-gke.100" in answer.text and "1.34.9-gke.7" in answer.text


@pytest.mark.parametrize("wanted", ["1.36", "1.3", "1.33"])
def test_a_version_that_the_channel_does_not_offer(wanted: str) -> None:
    answer = version(wanted, rapid=["1.36.0-gke.100"], regular=["1.35.3-gke.1", "1.34.9-gke.7"])
    assert answer.state is State.SHORT
    assert "1.35, 1.34" in answer.fix
    assert ("on.channel to rapid" in answer.fix) == (wanted == "1.36")


def test_a_channel_that_gke_does_not_report_is_unknown() -> None:
    assert version("1.35", rapid=["1.35.3-gke.1"]).state is State.UNKNOWN
    said = refused(503, "UNAVAILABLE", "try later")
    (answer,) = asked(versions.kubernetes, project(Google({CONFIG: said})))
    assert answer.state is State.UNKNOWN
