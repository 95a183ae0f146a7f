"""The storage tiers: which exist, who reaches them, what is copied where."""

import base64
import json
from typing import Any

import pytest

from infra.errors import UserError
from tests.components.gcp.computed import PROJECT
from tests.components.gcp.storage.cloud import HOMES, LUSTRE, NETWORK, storage
from tests.components.graph import Graph

BUCKETS = ("checkpoint", "dataset", "artifact")


def grants(made: Graph, kind: str) -> set[tuple[str, str, str]]:
    """(what, role, to which member) of every IAM resource of a kind."""
    return {
        (
            next(row[key] for key in ("bucket", "cryptoKeyId", "project") if key in row),
            row["role"],
            row["member"],
        )
        for row in made.all(kind).values()
    }


def calls(made: Graph) -> dict[str, dict[str, Any]]:
    """What Cloud Scheduler asks for, by the end of the address."""
    found = {}
    for job in made.all("Job").values():
        target = job["httpTarget"]
        body = json.loads(base64.b64decode(target["body"]))
        found[target["uri"].rpartition(":")[2]] = {**job, "body": body}
    return found


def minutes(schedule: str) -> set[int]:
    """The minutes of the hour at which something runs."""
    first = schedule.split(maxsplit=1)[0]
    return set(range(0, 60, int(first[2:]))) if first.startswith("*/") else {int(first)}


def test_three_buckets_in_the_region_under_one_key_that_the_service_may_use() -> None:
    made = storage()
    buckets = made.all("Bucket")
    assert len({made.outputs[f"{kind}_bucket"] for kind in BUCKETS}) == len(buckets) == 3
    assert {row["location"] for row in buckets.values()} == {"us-central1"}
    assert {row["encryption"]["defaultKmsKeyName"] for row in buckets.values()} == {made.outputs["key_id"]}
    agent = f"serviceAccount:{PROJECT}@gs-project-accounts.iam.gserviceaccount.com"
    assert {member for _, _, member in grants(made, "CryptoKeyIAMMember")} == {agent}
    # A bucket is refused while its service may not use the key.
    for name in buckets:
        assert any(far.startswith("CryptoKeyIAMMember:") for far in made.waits_for(f"Bucket:{name}"))
    for absent in ("lustre/instance", "filestore", "cloudscheduler", "anywhereCache"):
        assert not [one for one in made.cloud.types() if absent in one]


@pytest.mark.parametrize("discard", [True, False])
def test_teams_have_buckets_of_datasets_that_stay_when_they_leave(*, discard: bool) -> None:
    folders, zones = ["vision", "all"], ["us-central1-a"]
    made = storage(dataset_folders=folders, force_destroy=discard, cache_zones=zones)
    buckets = made.all("Bucket")
    of_teams = {"dev-storage-datasets-vision", "dev-storage-datasets-all"}
    added = {"dev-storage-shared-datasets", *of_teams}
    assert buckets.keys() - storage().all("Bucket").keys() == added
    assert all(buckets[name] == buckets["dev-storage-datasets"] for name in added)
    kept = {name for name in buckets if made.requests[f"Bucket:{name}"].retainOnDelete}
    assert kept == (set() if discard else added)
    assert {row["bucket"] for row in made.all("AnywhereCache").values()} == {"dev-storage-datasets", *added}
    (log,) = made.all("ProjectSink").values()
    assert all(name in log["filter"] for name in added)


def test_each_bucket_keeps_its_data_as_its_purpose_asks() -> None:
    made = storage()
    checkpoints = made.find("Bucket", "-checkpoints")
    assert checkpoints["hierarchicalNamespace"] == {"enabled": True}
    assert {"age": 60, "withState": "LIVE"} in [rule["condition"] for rule in checkpoints["lifecycleRules"]]
    assert made.find("Bucket", "-datasets")["autoclass"] == {"enabled": True}
    artifacts = made.find("Bucket", "-artifacts")
    assert artifacts["enableObjectRetention"] is True and artifacts["versioning"] == {"enabled": True}
    assert not [rule for rule in artifacts["lifecycleRules"] if rule["condition"].get("withState") == "LIVE"]


def test_who_used_which_object_is_written_down_once_and_kept_as_long_as_asked() -> None:
    made = storage()
    audit = made.find("IAMAuditConfig")
    assert audit["service"] == "storage.googleapis.com"
    assert {one["logType"] for one in audit["auditLogConfigs"]} == {"DATA_READ", "DATA_WRITE"}
    # Another stack of the project may rely on it.
    (key,) = [name for name in made.requests if name.startswith("IAMAuditConfig:")]
    assert made.requests[key].retainOnDelete is True
    log = made.find("ProjectBucketConfig")
    assert (log["location"], log["retentionDays"]) == ("us-central1", 90)
    sink, left_out = made.find("ProjectSink"), made.find("ProjectExclusion")
    assert sink["filter"] == left_out["filter"]
    for kind in BUCKETS:
        assert f'"{made.outputs[f"{kind}_bucket"]}"' in sink["filter"]
    # Left out of the project's log only once it is kept elsewhere.
    (exclusion,) = [name for name in made.edges if name.startswith("ProjectExclusion:")]
    assert any(far.startswith("ProjectSink:") for far in made.waits_for(exclusion))
    assert made.outputs["log_bucket"] == log["bucketId"]


def test_lustre_is_what_was_asked_for_nodes_of_gke_where_private_services_are_reached() -> None:
    made = storage(lustre=LUSTRE)
    system = made.find("lustre/instance:Instance")
    assert (system["capacityGib"], system["perUnitStorageThroughput"]) == ("36000", "250")
    assert (system["location"], system["network"]) == ("us-central1-a", NETWORK)
    assert system["filesystem"].isalnum() and len(system["filesystem"]) <= 8
    assert system["gkeSupportEnabled"] is False, "nodes speak on Lustre's own port"
    assert "kmsKey" not in system, "GKE cannot use an instance with a key of ours"
    assert (
        made.outputs["lustre"] == f"projects/{PROJECT}/locations/us-central1-a/instances/dev-storage-lustre"
    )
    assert made.delete_before_replace["Instance:dev-storage-lustre"] is True
    assert made.requests["Instance:dev-storage-lustre"].protect is True
    bold = storage(lustre=LUSTRE, deletion_protection=False)
    assert bold.requests["Instance:dev-storage-lustre"].protect is False


def test_checkpoints_are_exported_and_datasets_imported_by_the_clock() -> None:
    made = storage(lustre=LUSTRE)
    asked = calls(made)
    assert asked["exportData"]["body"] == {
        "gcsPath": {"uri": f"gs://{made.outputs['checkpoint_bucket']}/"},
        "lustrePath": {"path": "/checkpoints/"},
    }
    assert asked["importData"]["body"] == {
        "gcsPath": {"uri": f"gs://{made.outputs['dataset_bucket']}/"},
        "lustrePath": {"path": "/datasets/"},
    }
    for name, call in asked.items():
        target = call["httpTarget"]
        assert target["httpMethod"] == "POST"
        assert target["uri"] == f"https://lustre.googleapis.com/v1/{made.outputs['lustre']}:{name}"
        assert target["oauthToken"]["serviceAccountEmail"].endswith(f"@{PROJECT}.iam.gserviceaccount.com")
    exports, imports = (minutes(asked[name]["schedule"]) for name in ("exportData", "importData"))
    assert not exports & imports, "an instance copies once at a time"


def test_copies_are_asked_for_and_made_with_no_more_rights_than_they_need() -> None:
    made = storage(lustre=LUSTRE)
    role = made.find("IAMCustomRole")
    assert set(role["permissions"]) == {"lustre.instances.exportData", "lustre.instances.importData"}
    assert role["roleId"].replace("_", "").isalnum() and 3 <= len(role["roleId"]) <= 64
    ((_, granted, caller),) = grants(made, "projects/iAMMember:IAMMember")
    assert granted.endswith(role["roleId"]) and caller.startswith("serviceAccount:")
    assert len(made.find("Account")["accountId"]) <= 30
    agent = "serviceAccount:service-123456789012@gcp-sa-lustre.iam.gserviceaccount.com"
    assert grants(made, "BucketIAMMember") == {
        (made.outputs["checkpoint_bucket"], "roles/storage.objectUser", agent),
        (made.outputs["dataset_bucket"], "roles/storage.objectViewer", agent),
    }
    # No permission can be granted before there is such an account.
    for grant in made.all("BucketIAMMember"):
        assert "ServiceIdentity:dev-storage-lustre-copies-agent" in made.waits_for(f"BucketIAMMember:{grant}")
    for job in made.all("Job"):
        assert {"IAMMember", "BucketIAMMember"} <= {
            far.partition(":")[0] for far in made.waits_for(f"Job:{job}")
        }


@pytest.mark.parametrize(
    ("size", "path"),
    [
        ({"capacity_gib": 9000, "throughput_mb_s_per_tib": 250}, "capacity_gib"),
        ({"capacity_gib": 37000, "throughput_mb_s_per_tib": 250}, "capacity_gib"),
        ({"capacity_gib": 36000, "throughput_mb_s_per_tib": 200}, "throughput_mb_s_per_tib"),
    ],
)
def test_a_size_of_lustre_that_is_not_offered_is_refused(size: dict[str, int], path: str) -> None:
    with pytest.raises(UserError) as refusal:
        storage(lustre={**LUSTRE, **size})
    assert [problem.path for problem in refusal.value.problems] == [f"dev-storage-lustre.{path}"]


def test_homes_are_encrypted_private_for_nodes_alone_and_speak_nfs_4() -> None:
    made = storage(homes=HOMES)
    homes = made.find("filestore/instance:Instance")
    assert (homes["tier"], homes["location"], homes["protocol"]) == ("REGIONAL", "us-central1", "NFS_V4_1")
    assert homes["kmsKeyName"] == made.outputs["key_id"]
    (network,) = homes["networks"]
    assert (network["connectMode"], network["network"]) == ("PRIVATE_SERVICE_ACCESS", "dev")
    (export,) = homes["fileShares"]["nfsExportOptions"]
    assert export["ipRanges"] == ["10.0.0.0/20"]
    assert homes["deletionProtectionEnabled"] is True
    users = {member for _, _, member in grants(made, "CryptoKeyIAMMember")}
    assert "serviceAccount:service-123456789012@cloud-filer.iam.gserviceaccount.com" in users
    zonal = storage(homes={**HOMES, "zone": "us-central1-b"}, deletion_protection=False)
    cheap = zonal.find("filestore/instance:Instance")
    assert (cheap["tier"], cheap["location"]) == ("ZONAL", "us-central1-b")
    assert cheap["deletionProtectionEnabled"] is False


def test_homes_are_backed_up_daily_in_their_region_and_the_backups_outlive_the_stack() -> None:
    made = storage(homes={**HOMES, "zone": "us-central1-b"})
    vault, plan = made.find("BackupVault"), made.find("BackupPlan")
    planned = made.find("BackupPlanAssociation")
    assert {row["location"] for row in (vault, plan, planned)} == {"us-central1"}
    assert made.requests["BackupVault:dev-storage-homes-vault"].retainOnDelete is True
    # Such a name is taken as long as the vault is there: it ends in the random characters of the instance.
    assert vault["backupVaultId"] == "dev-storage-homes-1a2b3c4"
    (rule,) = plan["backupRules"]
    assert rule["standardSchedule"]["recurrenceType"] == "DAILY"
    enforced = int(vault["backupMinimumEnforcedRetentionDuration"].removesuffix("s"))
    assert 0 < enforced <= rule["backupRetentionDays"] * 86400
    assert planned["resource"] == "dev-storage-homes-id"
    assert not storage(homes={**HOMES, "backups": False}).all("BackupVault")


def test_homes_of_a_size_that_is_not_offered_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        storage(homes={**HOMES, "capacity_gib": 10})
    assert caught.value.codes == (("filestore-size-not-offered", "dev-storage-homes.capacity_gib"),)


def test_caches_and_a_fast_bucket_are_a_choice() -> None:
    made = storage(cache_zones=["us-central1-a", "us-central1-c"], rapid_zone="us-central1-a")
    caches = made.all("AnywhereCache").values()
    assert {row["zone"] for row in caches} == {"us-central1-a", "us-central1-c"}
    assert {row["bucket"] for row in caches} == {made.outputs["dataset_bucket"]}
    fast = made.find("Bucket", "-rapid-checkpoints")
    assert (fast["storageClass"], fast["customPlacementConfig"]["dataLocations"]) == (
        "RAPID",
        ["us-central1-a"],
    )
    assert {"age": 60, "withState": "LIVE"} in [rule["condition"] for rule in fast["lifecycleRules"]]
    assert '"dev-storage-rapid-checkpoints"' in made.find("ProjectSink")["filter"]


def test_what_all_teams_read_is_a_folder_with_roles_of_its_own() -> None:
    made = storage()
    folder = made.find("ManagedFolder")
    assert (folder["name"], folder["bucket"]) == ("shared/", made.outputs["dataset_bucket"])
    assert made.outputs["shared_folder"] == "shared/"


def test_buckets_with_objects_and_their_key_survive_a_destroy_by_default() -> None:
    kept, given_up = storage(), storage(force_destroy=True)
    assert not any(row["forceDestroy"] for row in kept.all("Bucket").values())
    assert kept.find("CryptoKey")["deletionPolicy"] == "ABANDON"
    assert all(row["forceDestroy"] for row in given_up.all("Bucket").values())
    assert given_up.find("CryptoKey")["deletionPolicy"] == "DELETE"
