"""Alarms of the cloud on storage without metrics in the cluster."""

from typing import Any

import pytest

from infra.alarms.storage import bucket_limits_gb
from tests.components.graph import Graph
from tests.stacks.composition.composed import Pair, composed, stack_spec

AWS, GCP = ("medium", "aws"), ("medium", "gcp")
# 70 billion parameters, 420 GB a checkpoint, 48 a day.
SIZE_GB, A_DAY = 420, 48


def known(spec: Any) -> None:
    """A stack that knows its model, cools its checkpoints, and watches nothing in the cluster."""
    spec["data"]["checkpoints"] = {
        "model_params_b": 70,
        "weight_bytes": 2,
        "optimizer_bytes": 4,
        "interval_minutes": 30,
        "keep_last": 10,
        "cool_after_days": 31,
        "expire_days": 90,
    }
    spec["layout"] |= {"monitoring": {"kind": "none"}, "idle_gpus": None}
    spec["smoke"]["schedule"] = None
    for team in spec["teams"]:
        team.pop("alert_emails", None)


def nothing(spec: Any) -> None:
    known(spec)
    spec["data"] |= {"checkpoints": {"model_params_b": None}, "shared_fs": None, "homes": False}


def made(pair: Pair, change: Any) -> Graph:
    return composed(pair, change)


def test_each_storage_class_may_hold_twice_what_a_run_leaves_there() -> None:
    limits = bucket_limits_gb(stack_spec(AWS, known))
    assert limits == {0: 2 * 31 * A_DAY * SIZE_GB, 1: 2 * 59 * A_DAY * SIZE_GB}
    assert bucket_limits_gb(stack_spec(AWS, nothing)) == {}


def test_what_runs_delete_counts_while_it_can_be_restored() -> None:
    def deleting(spec: Any) -> None:
        known(spec)
        spec["data"]["checkpoints"] |= {"in_bucket": "kept", "cool_after_days": None}
        spec["data"]["noncurrent_days"] = 7

    assert bucket_limits_gb(stack_spec(AWS, deleting)) == {0: 2 * (10 + 7 * A_DAY) * SIZE_GB}


def test_aws_reports_the_topic_of_the_platform_also_where_nothing_watches_the_cluster() -> None:
    graph = made(AWS, known)
    alarms = graph.all("MetricAlarm")
    by_metric = {(one["metricName"], one["dimensions"].get("StorageType")): one for one in alarms.values()}
    shared = stack_spec(AWS, known).data.shared_fs
    assert shared is not None
    lustre = by_metric["FreeDataStorageCapacity", None]
    assert lustre["threshold"] == pytest.approx(0.15 * shared.capacity_gib * 2**30)
    standard = by_metric["BucketSizeBytes", "StandardStorage"]
    assert standard["threshold"] == 2 * 31 * A_DAY * SIZE_GB * 1e9
    assert by_metric["BucketSizeBytes", "StandardIAStorage"]["threshold"] == 2 * 59 * A_DAY * SIZE_GB * 1e9
    (topic,) = graph.all("sns/topic:Topic").values()
    assert topic["kmsMasterKeyId"] != "alias/aws/sns"
    assert {one for alarm in alarms.values() for one in alarm["alarmActions"]} == {
        subscription["topic"] for subscription in graph.all("TopicSubscription").values()
    }


def test_google_cloud_mails_those_of_the_budget_also_where_nothing_watches_the_cluster() -> None:
    def with_lustre(spec: Any) -> None:
        known(spec)
        spec["data"]["shared_fs"] = {
            "capacity_gib": 18000,
            "throughput_mb_s_per_tib": 500,
            "zone": "us-central1-b",
        }

    graph = made(GCP, with_lustre)
    conditions = {
        condition["displayName"]: condition["conditionThreshold"]
        for policy in graph.all("AlertPolicy").values()
        for condition in policy["conditions"]
        if "conditionThreshold" in condition
    }
    assert conditions.keys() == {"LustreFillingUp", "HomesFillingUp", "CheckpointBucketAboveForecast"}
    assert conditions["CheckpointBucketAboveForecast"]["thresholdValue"] == 2 * 90 * A_DAY * SIZE_GB * 1e9
    for policy in graph.all("AlertPolicy").values():
        assert policy["notificationChannels"]


@pytest.mark.parametrize(("pair", "kind"), [(AWS, "MetricAlarm"), (GCP, "conditionThreshold")])
def test_where_nothing_fills_up_nothing_is_watched(pair: Pair, kind: str) -> None:
    graph = made(pair, nothing)
    assert not graph.all("MetricAlarm") and not graph.all("sns/topic:Topic")
    assert not [one for one in graph.all("AlertPolicy").values() if kind in str(one["conditions"])]
