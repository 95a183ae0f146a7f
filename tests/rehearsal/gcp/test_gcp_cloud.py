"""The emulated Google Cloud without an engine: ids, references, deletions, replacements."""

from typing import Any

import pytest

from rehearsal.core.journal import Journal, Journaled
from rehearsal.core.model import UNKNOWN, RefusalError
from tests.rehearsal.gcp.harness import Driver

NETWORK, SUBNETWORK = "compute/network:Network", "compute/subnetwork:Subnetwork"
CLUSTER, POOL = "container/cluster:Cluster", "container/nodePool:NodePool"
ACCOUNT, SQL, RING = (
    "serviceaccount/account:Account",
    "sql/databaseInstance:DatabaseInstance",
    "kms/keyRing:KeyRing",
)
COMPUTE = "https://www.googleapis.com/compute/v1/"


def test_ids_and_links_are_googles(google: Driver) -> None:
    network = google.create(NETWORK, "net", name="net")
    assert network["id"] == "projects/research/global/networks/net"
    assert network["selfLink"] == f"{COMPUTE}projects/research/global/networks/net"
    subnetwork = google.create(SUBNETWORK, "sub", network="net", ipCidrRange="10.0.0.0/20")
    assert subnetwork["gatewayAddress"] == "10.0.0.1" and subnetwork["network"] == network["selfLink"]
    bucket = google.create("storage/bucket:Bucket", "Runs", location="us-central1")
    assert bucket["url"] == f"gs://{bucket['name']}" and bucket["location"] == "US-CENTRAL1"
    assert bucket["name"].startswith("runs-") and bucket["id"] == bucket["name"]
    account = google.create(ACCOUNT, "sa", accountId="trainer")
    assert account["member"] == "serviceAccount:trainer@research.iam.gserviceaccount.com"
    database = google.create(SQL, "db", databaseVersion="POSTGRES_15", settings={"tier": "db-f1-micro"})
    assert database["connectionName"] == f"research:us-central1:{database['name']}"


@pytest.mark.parametrize(
    "form",
    [
        "net",
        "projects/research/global/networks/net",
        f"{COMPUTE}projects/research/global/networks/net",
        "global/networks/net",
    ],
)
def test_a_network_is_found_in_every_form_and_missed_in_every_form(google: Driver, form: str) -> None:
    with pytest.raises(RefusalError, match=r"notFound.*was not found.*property network"):
        google.create(SUBNETWORK, "sub", network=form, ipCidrRange="10.0.0.0/20")
    google.create(NETWORK, "net", name="net")
    google.create(SUBNETWORK, "sub", network=form, ipCidrRange="10.0.0.0/20")


def test_the_default_network_and_other_projects_are_accepted(google: Driver) -> None:
    allowed: dict[str, Any] = {"allows": [{"protocol": "tcp"}], "sourceRanges": ["10.0.0.0/8"]}
    google.create("compute/firewall:Firewall", "a", network="default", **allowed)
    shared = "projects/host/global/networks/shared"
    google.create("compute/firewall:Firewall", "b", network=shared, **allowed)
    assert {"a", "b"} <= set(google.made)


def test_deleting_a_used_network_is_refused(google: Driver) -> None:
    google.create(NETWORK, "net", name="net")
    google.create(SUBNETWORK, "sub", network="net", name="sub", ipCidrRange="10.0.0.0/20")
    user = "projects/research/regions/us-central1/subnetworks/sub"
    with pytest.raises(RefusalError, match=f"resourceInUseByAnotherResource.*already being used by '{user}'"):
        google.delete("net")


def test_names_are_unique_and_some_cannot_be_used_again(google: Driver) -> None:
    google.create(NETWORK, "net", name="net")
    with pytest.raises(RefusalError, match=r"alreadyExists: The resource .*networks/net' already exists"):
        google.create(NETWORK, "again", name="net")
    google.create(RING, "ring", name="keys", location="us-central1")
    google.delete("ring")
    with pytest.raises(RefusalError, match=r"KeyRing .*keys already exists.*cannot be deleted"):
        google.create(RING, "ring", name="keys", location="us-central1")


def test_an_interrupted_create_is_taken_back(google: Driver) -> None:
    google.cloud = Journaled(google.cloud, Journal(google.state))
    google.create(NETWORK, "net", name="net")
    google.create(NETWORK, "net", name="net")  # the engine does not know the first: the same URN again
    assert google.state.count("gcp") == 1


def test_members_must_exist(google: Driver) -> None:
    member: dict[str, Any] = {"project": "research", "role": "roles/viewer"}
    email = "trainer@research.iam.gserviceaccount.com"
    with pytest.raises(RefusalError, match=f"badRequest: Service account {email} does not exist"):
        google.create("projects/iAMMember:IAMMember", "m", member=f"serviceAccount:{email}", **member)
    google.create(ACCOUNT, "sa", accountId="trainer")
    google.create("projects/iAMMember:IAMMember", "m", member=f"serviceAccount:{email}", **member)
    pool: dict[str, Any] = {"serviceAccountId": f"projects/research/serviceAccounts/{email}"}
    pool["role"] = "roles/iam.workloadIdentityUser"
    workload = "serviceAccount:research.svc.id.goog[ns/sa]"
    with pytest.raises(RefusalError, match=r"Identity Pool does not exist \(research.svc.id.goog\)"):
        google.create("serviceaccount/iAMMember:IAMMember", "w", member=workload, **pool)


def test_a_preview_knows_places_and_not_links(google: Driver) -> None:
    shown = google.create(SUBNETWORK, "sub", preview=True, network="net", ipCidrRange="10.0.0.0/20")
    assert shown["selfLink"] is UNKNOWN and shown["region"] == "us-central1"
    assert google.state.count("gcp") == 0


def test_what_forces_a_replacement(google: Driver) -> None:
    google.create(NETWORK, "net", name="net")
    sub: dict[str, Any] = {"network": "net", "name": "sub"}
    google.create(SUBNETWORK, "sub", ipCidrRange="10.0.0.0/20", **sub)
    assert google.diff("sub", ipCidrRange="10.0.0.0/16", **sub).replaces == ()
    smaller = google.diff("sub", ipCidrRange="10.0.0.0/24", **sub)
    assert smaller.replaces == ("ipCidrRange",) and smaller.delete_before_replace
    google.create(CLUSTER, "gke", name="gke", initialNodeCount=1, location="us-central1-a")
    pool: dict[str, Any] = {"cluster": "gke", "location": "us-central1-a"}
    google.create(POOL, "pool", nodeConfig={"machineType": "a3-highgpu-8g", "spot": True}, **pool)
    bigger = google.diff("pool", nodeConfig={"machineType": "a3-megagpu-8g", "spot": True}, **pool)
    assert bigger.changed == ("nodeConfig.machineType",) and bigger.replaces == ()
    steady = google.diff("pool", nodeConfig={"machineType": "a3-highgpu-8g"}, **pool)
    assert steady.replaces == ("nodeConfig.spot",)


def test_the_order_of_zones_is_no_change(google: Driver) -> None:
    zones = ["us-central1-a", "us-central1-b"]
    gke: dict[str, Any] = {"name": "gke", "initialNodeCount": 1, "location": "us-central1"}
    google.create(CLUSTER, "gke", nodeLocations=zones, **gke)
    assert google.diff("gke", nodeLocations=zones[::-1], **gke).changed == ()
    assert google.diff("gke", nodeLocations=zones[:1], **gke).changed == ("nodeLocations[1]",)


def test_a_control_plane_is_upgraded_in_place(google: Driver) -> None:
    gke: dict[str, Any] = {"name": "gke", "initialNodeCount": 1, "location": "us-central1"}
    google.create(CLUSTER, "gke", minMasterVersion="1.35", **gke)
    assert google.update("gke", minMasterVersion="1.36", **gke)["masterVersion"] == "1.36"
    with pytest.raises(RefusalError, match="cannot upgrade to a lower version"):
        google.update("gke", minMasterVersion="1.35", **gke)


def test_a_file_system_keeps_its_address_when_it_is_changed(google: Driver) -> None:
    google.create(NETWORK, "net", name="net")
    share: dict[str, Any] = {
        "name": "homes",
        "location": "us-central1",
        "tier": "REGIONAL",
        "fileShares": {"name": "home", "capacityGb": 1024},
        "networks": [{"network": "net", "modes": ["MODE_IPV4"]}],
    }
    made = google.create("filestore/instance:Instance", "homes", **share)
    changed = google.update("homes", **share, deletionProtectionEnabled=True)
    assert changed["networks"][0]["ipAddresses"] == made["networks"][0]["ipAddresses"] != []


def test_a_preview_allows_what_an_update_of_the_cluster_may_enable(google: Driver) -> None:
    google.create(NETWORK, "net", name="net")
    google.create(SUBNETWORK, "sub", network="net", name="sub", ipCidrRange="10.0.0.0/20")
    google.create(CLUSTER, "gke", name="gke", initialNodeCount=1, location="us-central1-a")
    further = {"additionalNodeNetworkConfigs": [{"network": "net", "subnetwork": "sub"}]}
    pool: dict[str, Any] = {"cluster": "gke", "location": "us-central1-a", "networkConfig": further}
    google.create(POOL, "pool", preview=True, **pool)
    with pytest.raises(RefusalError, match="multi-networking is not enabled"):
        google.create(POOL, "pool", **pool)


def test_a_preview_allows_a_key_whose_grant_may_follow(google: Driver) -> None:
    """A stack that grows previews a grant beside what needs it, with a key that is there already."""
    ring = google.create("kms/keyRing:KeyRing", "ring", name="ring", location="us-central1")
    key = google.create("kms/cryptoKey:CryptoKey", "key", name="key", keyRing=ring["id"])
    topic: dict[str, Any] = {"name": "alerts", "kmsKeyName": key["id"]}
    google.create("pubsub/topic:Topic", "alerts", preview=True, **topic)
    with pytest.raises(RefusalError, match="useToEncrypt"):
        google.create("pubsub/topic:Topic", "alerts", **topic)


def test_a_bucket_is_deleted_empty_or_by_force(google: Driver) -> None:
    google.create("storage/bucket:Bucket", "b", name="full", location="US")
    google.create("storage/bucketObject:BucketObject", "o", bucket="full", name="a", content="x")
    with pytest.raises(RefusalError, match="conflict: The bucket you tried to delete is not empty"):
        google.delete("b")


def test_functions_use_the_location(google: Driver) -> None:
    versions = google.invoke("container/getEngineVersions:getEngineVersions", versionPrefix="1.32.")
    assert versions["latestMasterVersion"].startswith("1.32.")
    network = google.invoke("compute/getNetwork:getNetwork", name="default")
    assert network["id"] == "projects/research/global/networks/default"
    made = google.create(NETWORK, "net", name="net")
    assert google.invoke("compute/getNetwork:getNetwork", name="net")["id"] == made["id"]
    with pytest.raises(RefusalError, match="notFound"):
        google.invoke("container/getCluster:getCluster", name="none")
    with pytest.raises(RefusalError, match=r"getZone\b.*compute/getZones"):
        google.invoke("compute/getZone:getZone")


def test_a_check_and_a_create_report_rule_path_and_fix(google: Driver) -> None:
    reason = google.check("storage/bucket:Bucket", name="Runs", location="us-central1")["name"]
    assert reason.startswith("[GCP-STORAGE-001] ") and "'Runs'" in reason
    network = google.create(NETWORK, "net", name="net")["id"]
    settings = {"tier": "db-f1-micro", "ipConfiguration": {"ipv4Enabled": False, "privateNetwork": network}}
    with pytest.raises(RefusalError) as caught:
        google.create(SQL, "db", databaseVersion="POSTGRES_15", settings=settings)
    assert caught.value.code == "invalidRequest"
    said = str(caught.value)
    assert "[GCP-SQL-003]" in said and "(property settings.ipConfiguration.privateNetwork)" in said


def test_a_cloud_run_service_of_the_first_version_shows_its_url_in_its_status(google: Driver) -> None:
    template = {"spec": {"containers": [{"image": "gcr.io/cloudrun/hello"}]}}
    made = google.create(
        "cloudrun/service:Service", "web", name="web", location="us-central1", template=template
    )
    assert made["id"] == "locations/us-central1/namespaces/research/services/web"
    (status,) = made["statuses"]
    assert status["url"].startswith("https://web-") and status["url"].endswith(".us-central1.run.app")
    assert status["latestReadyRevisionName"] == status["latestCreatedRevisionName"]


def test_types_in_no_table_show_values_of_the_right_form(google: Driver) -> None:
    token = "cloudfunctions/function:Function"
    given: dict[str, Any] = {"name": "f", "runtime": "python312"}
    made = google.create(token, "f", **given)
    assert made["versionId"].startswith("function-") and made["runtime"] == "python312"
    workflow = google.create("workflows/workflow:Workflow", "w", name="w", sourceContents="main:")
    assert isinstance(workflow["state"], str)
    assert google.create(token, "g", preview=True, **{**given, "name": "g"})["versionId"] is UNKNOWN
