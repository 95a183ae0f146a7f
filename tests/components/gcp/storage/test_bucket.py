"""A bucket refuses what it must refuse, whatever it is for."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.gcp.storage.bucket import GcpBucket, GcpBucketArgs
from infra.errors import UserError
from tests.components.graph import deploy_graph

KEY = "projects/ml/locations/us-central1/keyRings/r/cryptoKeys/k"
DAY = 86400


def made(name: str = "dev-data", **purpose: Any) -> Mapping[str, Any]:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        args = {"region": "us-central1", "key_id": KEY, "noncurrent_days": 30} | purpose
        return {"bucket": GcpBucket(name, cast(GcpBucketArgs, args)).bucket}

    return deploy_graph(program).find("Bucket")


def deletes(bucket: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [rule["condition"] for rule in bucket["lifecycleRules"] if rule["action"]["type"] == "Delete"]


@pytest.mark.parametrize("purpose", [{}, {"folders": True}, {"folders": True, "zone": "us-central1-a"}])
def test_no_bucket_is_public_or_asks_anything_but_iam_or_takes_another_kind_of_key(
    purpose: dict[str, Any],
) -> None:
    bucket = made(**purpose)
    assert bucket["publicAccessPrevention"] == "enforced"
    assert bucket["uniformBucketLevelAccess"] is True
    encryption = bucket["encryption"]
    assert encryption["defaultKmsKeyName"] == KEY
    refused = {"restrictionMode": "FullyRestricted"}
    assert encryption["googleManagedEncryptionEnforcementConfig"] == refused
    assert encryption["customerSuppliedEncryptionEnforcementConfig"] == refused
    # Our own key is of the kind that is left.
    assert "customerManagedEncryptionEnforcementConfig" not in encryption


def test_what_is_deleted_comes_back_from_versions_and_is_paid_for_once() -> None:
    bucket = made()
    assert bucket["versioning"] == {"enabled": True}
    assert deletes(bucket) == [{"daysSinceNoncurrentTime": 30, "withState": "ARCHIVED"}]
    assert bucket["softDeletePolicy"] == {"retentionDurationSeconds": 0}, "absent would be seven days"


def test_a_bucket_with_folders_keeps_deleted_objects_instead_of_versions() -> None:
    bucket = made(folders=True)
    assert bucket["hierarchicalNamespace"] == {"enabled": True}
    assert "versioning" not in bucket
    assert bucket["softDeletePolicy"] == {"retentionDurationSeconds": 30 * DAY}
    assert deletes(bucket) == []


def test_parts_of_uploads_go_in_every_bucket_and_checkpoints_when_they_are_old() -> None:
    for folders in (False, True):
        bucket = made(folders=folders, expire_days=90)
        aborts = [
            rule["condition"]
            for rule in bucket["lifecycleRules"]
            if rule["action"]["type"] == "AbortIncompleteMultipartUpload"
        ]
        assert aborts == [{"age": 7}]
        assert {"age": 90, "withState": "LIVE"} in deletes(bucket)
    assert not any("age" in condition for condition in deletes(made()))


def test_objects_move_to_cheaper_classes_when_asked() -> None:
    bucket = made(folders=True, expire_days=300, cool_after_days=40, cold_after_days=100)
    moves = [rule for rule in bucket["lifecycleRules"] if rule["action"]["type"] == "SetStorageClass"]
    assert [(rule["action"]["storageClass"], rule["condition"]["age"]) for rule in moves] == [
        ("NEARLINE", 40),
        ("COLDLINE", 100),
    ]
    assert all(rule["action"]["type"] != "SetStorageClass" for rule in made()["lifecycleRules"])


def test_a_fast_bucket_is_in_one_zone_of_the_region_and_keeps_nothing_that_is_deleted() -> None:
    bucket = made(folders=True, zone="us-central1-a")
    assert (bucket["location"], bucket["storageClass"]) == ("us-central1", "RAPID")
    assert bucket["customPlacementConfig"] == {"dataLocations": ["us-central1-a"]}
    # Zonal buckets know no soft delete.
    assert bucket["softDeletePolicy"] == {"retentionDurationSeconds": 0}


def test_losing_data_locking_objects_and_moving_them_are_opt_in() -> None:
    careful = made()
    assert careful["forceDestroy"] is False
    assert not {"enableObjectRetention", "autoclass", "storageClass"} & set(careful)
    bold = made(force_destroy=True, object_retention=True, autoclass=True)
    assert (bold["forceDestroy"], bold["enableObjectRetention"]) == (True, True)
    assert bold["autoclass"] == {"enabled": True}


@pytest.mark.parametrize(
    ("purpose", "paths"),
    [
        ({"folders": True, "noncurrent_days": 6}, ["noncurrent_days"]),
        ({"folders": True, "noncurrent_days": 91}, ["noncurrent_days"]),
        ({"folders": True, "autoclass": True, "object_retention": True}, ["autoclass", "object_retention"]),
        ({"zone": "us-central1-a"}, ["folders"]),
        ({"zone": "us-central10-a", "folders": True}, ["zone"]),
        ({"folders": True, "noncurrent_days": 1, "zone": "us-east1-b"}, ["noncurrent_days", "zone"]),
        ({"folders": True, "zone": "us-central1-a", "cool_after_days": 40}, ["cool_after_days"]),
    ],
)
def test_what_excludes_itself_is_refused_all_at_once(purpose: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(UserError) as refusal:
        made(**purpose)
    assert [problem.path for problem in refusal.value.problems] == [f"dev-data.{path}" for path in paths]


@pytest.mark.parametrize("days", [7, 90])
def test_the_bounds_of_soft_delete_are_accepted_and_versions_know_none(days: int) -> None:
    assert made(folders=True, noncurrent_days=days)["softDeletePolicy"] == {
        "retentionDurationSeconds": days * DAY
    }
    assert made(noncurrent_days=365)["versioning"] == {"enabled": True}


def test_a_long_name_leaves_room_for_what_makes_it_unique() -> None:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        GcpBucket("a" * 60, {"region": "us-central1", "key_id": KEY, "noncurrent_days": 7})
        return {}

    (name,) = deploy_graph(program).all("Bucket")
    assert len(name) + len("-0123456") <= 63
