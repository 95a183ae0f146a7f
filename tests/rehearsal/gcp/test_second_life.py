"""Resources that are created again under the same name: what remains of the former ones."""

import time
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.journal import Journal, Journaled
from rehearsal.core.model import RefusalError
from rehearsal.dataplane import folders
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.private_sql import database, private_network

SQL = "sql/databaseInstance:DatabaseInstance"
DAY_S = 86_400
PRODUCER = "Producer services .e.g. CloudSQL, Cloud Memstore, etc.. are still using this connection"


def test_cloud_sql_holds_the_connection_for_days(google: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    database(google, private_network(google))
    with pytest.raises(RefusalError, match=PRODUCER):
        google.delete("psa")
    google.delete("db")
    with pytest.raises(RefusalError, match=f"{PRODUCER}.*REMOVE_PEERING"):
        google.delete("psa")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 5 * DAY_S)
    google.delete("psa")


@pytest.mark.parametrize("policy", ["REMOVE_PEERING", "ABANDON"])
def test_a_policy_releases_the_connection(google: Driver, policy: str) -> None:
    database(google, private_network(google, deletionPolicy=policy))
    for name in ("db", "psa", "range", "net"):
        google.delete(name)
    google.create(SQL, "other", databaseVersion="MYSQL_8_0", settings={"tier": "db-f1-micro"})


def test_a_connection_that_nothing_used_goes_at_once(google: Driver) -> None:
    private_network(google)
    for name in ("psa", "range", "net"):
        google.delete(name)


def test_a_rolled_back_create_holds_nothing(google: Driver) -> None:
    google.cloud = Journaled(google.cloud, Journal(google.state))
    link = private_network(google)
    database(google, link)
    database(google, link)  # the engine does not know the first: the same URN again
    assert google.state.document("peering-held", link) is None
    google.delete("db")
    with pytest.raises(RefusalError, match="instanceAlreadyExists"):
        database(google, link)  # the name of an instance is kept for a week


def test_keys_and_rings_cannot_be_deleted(google: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    ring: dict[str, Any] = {"name": "keys", "location": "us-central1"}
    link = google.create("kms/keyRing:KeyRing", "ring", **ring)["id"]
    google.create("kms/cryptoKey:CryptoKey", "key", name="data", keyRing=link)
    for name in ("key", "ring"):
        google.delete(name)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 400 * DAY_S)
    for preview in (True, False):
        with pytest.raises(RefusalError, match=r"KeyRing .*/keyRings/keys already exists\."):
            google.create("kms/keyRing:KeyRing", "ring", preview=preview, **ring)
    google.create("kms/keyRing:KeyRing", "ring", name="keys-2", location="us-central1")


def test_names_of_buckets_are_global(google: Driver) -> None:
    google.create("storage/bucket:Bucket", "b", name="artifacts", location="US")
    google.config["project"] = "other"
    with pytest.raises(RefusalError, match="conflict"):
        google.create("storage/bucket:Bucket", "c", name="artifacts", location="US")


def test_a_bucket_with_a_cache_is_not_deleted(google: Driver) -> None:
    google.create("storage/bucket:Bucket", "b", name="data", location="us-central1")
    made = google.create("storage/anywhereCache:AnywhereCache", "c", bucket="data", zone="us-central1-a")
    assert made["id"] == "data/us-central1-a" and made["ttl"] == "86400s"
    with pytest.raises(RefusalError, match="not empty"):
        google.delete("b")
    for name in ("c", "b"):
        google.delete(name)


def test_a_file_system_that_is_made_again_is_empty(google: Driver) -> None:
    private_network(google)
    lustre: dict[str, Any] = {
        "instanceId": "fast",
        "location": "us-central1-a",
        "capacityGib": "9000",
        "perUnitStorageThroughput": "1000",
        "filesystem": "scratch",
        "network": "net",
    }
    made = google.create("lustre/instance:Instance", "fast", **lustre)
    file: Path = google.state.path.parent / "lustre" / made["id"] / "checkpoint"
    file.parent.mkdir(parents=True)
    file.touch()
    google.delete("fast")
    assert not file.exists() and folders.first_file(google.state.path.parent / "lustre") is None
    google.create("lustre/instance:Instance", "fast", **lustre)


def test_a_subnetwork_outlives_the_services_of_cloud_run_that_had_addresses_in_it(google: Driver) -> None:
    network = google.create("compute/network:Network", "net", name="net", autoCreateSubnetworks=False)["id"]

    def subnetwork(name: str, cidr: str) -> str:
        given = {"name": name, "region": "us-central1", "network": network, "ipCidrRange": cidr}
        return str(google.create("compute/subnetwork:Subnetwork", name, **given)["id"])

    def service(place: str) -> dict[str, Any]:
        access = {"networkInterfaces": [{"network": network, "subnetwork": place}]}
        return {
            "name": "web",
            "location": "us-central1",
            "deletionProtection": False,
            "template": {"containers": [{"image": "a"}], "vpcAccess": access},
        }

    first, second = subnetwork("first", "10.0.0.0/26"), subnetwork("second", "10.0.1.0/26")
    subnetwork("unused", "10.0.2.0/26")
    google.create("cloudrunv2/service:Service", "web", **service(first))
    assert google.diff("web", **service(second)).replaces == ()
    google.update("web", **service(second))
    for _ in range(2):  # in use by the service, however often it is tried
        with pytest.raises(RefusalError, match="services/web"):
            google.delete("second")
    google.delete("web")
    for held in ("first", "second"):
        with pytest.raises(RefusalError, match=r"resourceInUseByAnotherResource.*addresses/serverless-ipv4"):
            google.delete(held)
    for name in ("first", "second", "unused", "net"):
        google.delete(name)
