"""Alerts about storage on Google Cloud: metrics and addresses."""

from typing import Any, cast

import pulumi
import pytest

from components.gcp.alerts.storage import GcpStorageAlerts, GcpStorageAlertsArgs
from infra.engine.golang import ROOT
from infra.errors import UserError
from rehearsal.gcp.rules import BOOK
from tests.components.graph import Graph, deploy_graph

POLICY, CHANNEL = (
    "gcp:monitoring/alertPolicy:AlertPolicy",
    "gcp:monitoring/notificationChannel:NotificationChannel",
)
DEFAULTS = {
    "emails": ["ml@example.com"],
    "checkpoint_bucket": "dev-checkpoints",
    "checkpoint_limit_gb": 25_200.0,
    "lustre": {"instance": "projects/p/locations/us-central1-a/instances/dev-lustre", "least_free": 0.15},
    "homes": {"instance": "dev-homes", "location": "us-central1", "limit_gib": 870.4},
}


def made(*without: str, **changes: Any) -> Graph:
    args = {name: value for name, value in (DEFAULTS | changes).items() if name not in without}

    def program() -> dict[str, pulumi.Output[Any]]:
        return {"policies": GcpStorageAlerts("dev-alerts", cast(GcpStorageAlertsArgs, args)).policies}

    return deploy_graph(program, {CHANNEL: lambda asked: {"name": f"channels/{asked.name}"}})


def policies(graph: Graph) -> dict[str, dict[str, Any]]:
    return {asked.name: dict(asked.properties) for asked in graph.cloud.asked if asked.type == POLICY}


def threshold(name: str) -> dict[str, Any]:
    (condition,) = policies(made())[f"dev-alerts-{name}-policy"]["conditions"]
    return dict(condition["conditionThreshold"])


def test_lustre_is_the_share_of_all_data_targets_that_is_left() -> None:
    asked = threshold("lustre")
    where = (
        'resource.labels.location="us-central1-a" AND resource.labels.instance_id="dev-lustre" '
        'AND metric.labels.component!="mdt"'
    )
    of = 'resource.type="lustre.googleapis.com/Instance" AND metric.type="lustre.googleapis.com/instance'
    assert asked["filter"] == f'{of}/available_bytes" AND {where}'
    assert asked["denominatorFilter"] == f'{of}/capacity_bytes" AND {where}'
    assert (asked["comparison"], asked["thresholdValue"]) == ("COMPARISON_LT", 0.15)
    for aggregations in (asked["aggregations"], asked["denominatorAggregations"]):
        assert [one["crossSeriesReducer"] for one in aggregations] == ["REDUCE_SUM"]


def test_homes_are_measured_in_bytes() -> None:
    asked = threshold("homes")
    assert 'metric.type="file.googleapis.com/nfs/server/used_bytes"' in asked["filter"]
    assert 'resource.labels.instance_name="dev-homes"' in asked["filter"]
    assert (asked["comparison"], asked["thresholdValue"]) == ("COMPARISON_GT", 870.4 * 2**30)


def test_the_bucket_is_all_of_its_classes_and_what_can_be_restored() -> None:
    asked = threshold("checkpoints")
    assert asked["filter"] == (
        'resource.type="gcs_bucket" AND metric.type="storage.googleapis.com/storage/v2/total_bytes" '
        'AND resource.labels.bucket_name="dev-checkpoints"'
    )
    assert (asked["comparison"], asked["thresholdValue"]) == ("COMPARISON_GT", 25.2e12)
    assert asked["aggregations"][0]["crossSeriesReducer"] == "REDUCE_SUM"


def test_the_service_has_no_objection_and_each_mail_leads_to_a_page() -> None:
    found = policies(made())
    assert len(found) == 3
    for policy in found.values():
        assert [*BOOK.broken_alone(POLICY, policy)] == []
        assert policy["notificationChannels"] == ["channels/dev-alerts-mail-0"]
        page = policy["documentation"]["content"].split()[-1]
        assert (ROOT / page).is_file()


def test_what_is_not_there_is_not_watched() -> None:
    assert policies(made("lustre", "homes", "checkpoint_limit_gb")) == {}
    assert list(policies(made("lustre", "checkpoint_limit_gb"))) == ["dev-alerts-homes-policy"]


def test_addresses_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserError, match="alarm-without-address"):
        made(emails=[])
