"""The cluster's name, access to it, leftovers of an earlier one, and recipients of alerts."""

from typing import Any

import pytest

from tests.trainstack.preflight.gcp.asking import ABSENT, DENIED, ID, Google, aggregated, asked, project
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import alerts, leftovers, way_in
from trainstack.preflight.machine import LocalMachine

CLUSTER, DISKS = "container.projects.locations.clusters.get", "compute.disks.aggregatedList"
CHANNELS = "monitoring.projects.notificationChannels.list"
HOST = "gke-0123456789-746918459997.us-central1.gke.goog"
FOUND: dict[str, Any] = {
    "name": "dev-gcp",
    "resourceLabels": {"trainstack-stack": "dev-gcp"},
    "endpoint": "203.0.113.9",
    "controlPlaneEndpointsConfig": {
        "dnsEndpointConfig": {"endpoint": HOST},
        "ipEndpointsConfig": {"publicEndpoint": "203.0.113.9"},
    },
}


def there(row: Any, disks: Any = None) -> Google:
    return Google({CLUSTER: row, DISKS: aggregated("disks", {"zones/us-central1-a": disks or []})})


def test_the_name_is_free_or_the_stacks_own() -> None:
    for row in (ABSENT, FOUND):
        google = there(row)
        (answer,) = asked(leftovers.names, project(google))
        assert answer.state is State.READY
        assert google.given(CLUSTER) == [{"name": f"projects/{ID}/locations/us-central1/clusters/dev-gcp"}]


@pytest.mark.parametrize("labels", [{}, {"trainstack-stack": "other"}])
def test_a_cluster_of_another_owner_has_the_name(labels: dict[str, str]) -> None:
    (answer,) = asked(leftovers.names, project(there({**FOUND, "resourceLabels": labels})))
    assert answer.state is State.SHORT and "dev-gcp" in answer.text


def test_disks_of_a_former_cluster_are_noted() -> None:
    rows = [
        {"name": "pvc-1", "sizeGb": "100", "labels": {"goog-k8s-cluster-name": "dev-gcp"}},
        {"name": "pvc-2", "sizeGb": "100", "labels": {"goog-k8s-cluster-name": "other"}},
    ]
    (answer,) = asked(leftovers.names, project(there(ABSENT, rows)))
    assert answer.state is State.NOTE and answer.text.startswith("1 disks") and "100 GB" in answer.text
    (answer,) = asked(leftovers.names, project(there(FOUND, rows)))
    assert answer.state is State.READY


@pytest.mark.parametrize(("endpoint", "host"), [("dns", HOST), ("ip", "203.0.113.9")])
@pytest.mark.parametrize("accepts", [True, False])
def test_the_api_of_a_cluster_is_tried(endpoint: str, host: str, accepts: bool) -> None:
    tried: list[tuple[str, int]] = []

    def connects(*where: Any) -> bool:
        tried.append(where)
        return accepts

    of = project(there(FOUND), LocalMachine(connects=connects), on__endpoint=endpoint)
    (answer,) = asked(way_in.api, of)
    assert tried == [(host, 443)]
    assert answer.state is (State.READY if accepts else State.SHORT)


def test_a_name_that_is_not_there_yet_is_reached_from_anywhere() -> None:
    (answer,) = asked(way_in.api, project(there(ABSENT)))
    assert answer.state is State.READY


def test_an_address_is_reached_from_its_ranges_alone() -> None:
    def at(mine: str, **changes: Any) -> Any:
        of = project(there(ABSENT), LocalMachine(address=lambda: mine), on__endpoint="ip", **changes)
        (answer,) = asked(way_in.api, of)
        return answer

    assert at("198.51.100.7").state is State.READY
    outside = at("192.0.2.7")
    assert outside.state is State.SHORT and "192.0.2.7/32" in outside.fix
    assert at("198.51.100.7", layout__api_access=[]).state is State.SHORT
    assert at("<html>").state is State.UNKNOWN


def test_a_cluster_that_may_not_be_seen_is_unknown() -> None:
    for check in (way_in.api, leftovers.names):
        (answer,) = asked(check, project(Google({CLUSTER: DENIED})))
        assert answer.state is State.UNKNOWN and "container.clusters.get" in answer.fix


def test_the_plugin_that_logs_in() -> None:
    def found(at: str | None) -> Any:
        (answer,) = asked(way_in.program, project(Google(), LocalMachine(finds=lambda _: at)))
        return answer

    assert found("/usr/bin/gke-gcloud-auth-plugin").state is State.READY
    assert found(None).fix == "gcloud components install gke-gcloud-auth-plugin"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"enabled": False}, "is disabled"),
        ({"verificationStatus": "UNVERIFIED"}, "a confirmation"),
        ({"enabled": False, "displayName": "of others"}, ""),
        ({"enabled": False, "labels": {"email_address": "other@example.com"}}, ""),
    ],
)
def test_channels_to_people(changes: dict[str, Any], words: str) -> None:
    row = {
        "name": f"projects/{ID}/notificationChannels/1",
        "type": "email",
        "displayName": "dev-gcp alerts",
        "labels": {"email_address": "ml@example.com"},
        "enabled": True,
        **changes,
    }
    google = Google({CHANNELS: {"notificationChannels": [row]}})
    (answer,) = asked(alerts.mail, project(google))
    assert (answer.state is State.SHORT) == bool(words) and words in answer.text
    assert google.given(CHANNELS)[0]["filter"] == 'type="email"'
