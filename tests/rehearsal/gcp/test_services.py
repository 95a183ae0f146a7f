"""Properties and resources that services create by themselves."""

import time
from typing import Any

import pytest

from rehearsal.accounts import project_number
from rehearsal.core.model import UNKNOWN, RefusalError
from rehearsal.gcp import iam_delay
from rehearsal.kubernetes.clusters import endpoints, resolve
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.conftest import kubeconfig
from tests.rehearsal.gcp.rules.examples.jobs import EVENTARC

CLUSTER, POOL, NETWORK = "container/cluster:Cluster", "container/nodePool:NodePool", "compute/network:Network"
BASE: dict[str, Any] = {
    "name": "gke",
    "location": "us-central1",
    "initialNodeCount": 1,
    "deletionProtection": False,
}


def test_an_rdma_network_has_large_packets(google: Driver) -> None:
    profile = "projects/research/global/networkProfiles/us-central1-a-vpc-roce"
    fast = google.create(NETWORK, "fast", networkProfile=profile, autoCreateSubnetworks=False)
    assert fast["mtu"] == 8896
    assert google.create(NETWORK, "plain", autoCreateSubnetworks=False)["mtu"] == 1460


def test_a_cluster_is_reached_by_its_name_and_its_address(google: Driver) -> None:
    made = google.create(CLUSTER, "gke", **BASE)
    name = made["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
    assert name.endswith(f"-{project_number('research')}.us-central1.gke.goog")
    for server in (name, made["endpoint"]):
        found = resolve(google.state, {"kubeconfig": kubeconfig(f"https://{server}")})
        assert found is not None and found.name == "gke"
    changed = google.update(
        "gke",
        **BASE,
        controlPlaneEndpointsConfig={
            "dnsEndpointConfig": {"allowExternalTraffic": True},
            "ipEndpointsConfig": {"enabled": False},
        },
    )
    assert changed["controlPlaneEndpointsConfig"]["dnsEndpointConfig"] == {
        "allowExternalTraffic": True,
        "endpoint": name,
    }
    (record,) = google.state.find(type=f"gcp:{CLUSTER}")
    assert endpoints(record) == [name]
    with pytest.raises(RefusalError, match="no emulated cluster"):
        resolve(google.state, {"kubeconfig": kubeconfig(f"https://{made['endpoint']}")})


def test_a_preview_does_not_know_the_name(google: Driver) -> None:
    dns = {"dnsEndpointConfig": {"allowExternalTraffic": True}}
    shown = google.create(CLUSTER, "gke", preview=True, **BASE, controlPlaneEndpointsConfig=dns)
    endpoint = shown["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]
    assert endpoint == {"allowExternalTraffic": True, "endpoint": UNKNOWN}


def test_a_cluster_has_firewall_rules_of_its_own_which_go_with_it(google: Driver) -> None:
    google.create(NETWORK, "net", name="net", autoCreateSubnetworks=False)
    google.create(CLUSTER, "gke", **BASE, network="net")
    rules = google.state.find(type="gcp:compute/firewall:Firewall")
    assert {one.name.rpartition("-")[2] for one in rules} == {
        "all",
        "master",
        "vms",
        "inkubelet",
        "exkubelet",
    }
    with pytest.raises(RefusalError, match="already being used by"):
        google.delete("net")
    for name in ("gke", "net"):
        google.delete(name)
    assert google.state.count("gcp") == 0


def test_networks_that_gke_makes_show_in_the_outputs_alone(google: Driver) -> None:
    google.create(CLUSTER, "gke", **BASE, datapathProvider="ADVANCED_DATAPATH")
    asked: dict[str, Any] = {
        "cluster": "gke",
        "nodeLocations": ["us-central1-a"],
        "nodeConfig": {"machineType": "a3-ultragpu-8g", "spot": True},
        "networkConfig": {"acceleratorNetworkProfile": "auto"},
    }
    made = google.create(POOL, "gpus", **asked)
    assert len(made["networkConfig"]["additionalNodeNetworkConfigs"]) == 9
    assert google.diff("gpus", **asked).changed == ()
    changed = google.update("gpus", **asked, nodeCount=2)
    assert len(changed["networkConfig"]["additionalNodeNetworkConfigs"]) == 9


def test_a_file_share_keeps_its_address_when_its_protection_is_switched(google: Driver) -> None:
    google.create(NETWORK, "net", name="net", autoCreateSubnetworks=False)
    share: dict[str, Any] = {
        "name": "homes",
        "location": "us-central1-a",
        "tier": "ZONAL",
        "fileShares": {"name": "homes", "capacityGb": 1024},
        "networks": [{"network": "net", "modes": ["MODE_IPV4"]}],
    }
    made = google.create("filestore/instance:Instance", "homes", **share, deletionProtectionEnabled=True)
    changed = google.update("homes", **share, deletionProtectionEnabled=False)
    assert changed["networks"] == made["networks"] and made["networks"][0]["ipAddresses"]


def test_a_service_agent_has_its_services_address(google: Driver) -> None:
    made = google.create("projects/serviceIdentity:ServiceIdentity", "sql", service="sqladmin.googleapis.com")
    email = f"service-{project_number('research')}@gcp-sa-cloud-sql.iam.gserviceaccount.com"
    assert made["email"] == email and made["member"] == f"serviceAccount:{email}"


def test_an_agent_is_a_member_and_a_role_lets_a_build_read_some_time_after_their_creation(
    google: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = google.create("serviceaccount/account:Account", "builds", accountId="builds-functions")
    agent = google.create(
        "projects/serviceIdentity:ServiceIdentity", "sql", service="sqladmin.googleapis.com"
    )
    grant: dict[str, Any] = {"project": "research", "role": "roles/storage.objectViewer"}
    function: dict[str, Any] = {
        "name": "stop",
        "location": "us-central1",
        "buildConfig": {"runtime": "python313", "entryPoint": "run", "serviceAccount": account["name"]},
    }
    google.create("projects/iAMMember:IAMMember", "builder", **grant, member=account["member"])
    with pytest.raises(RefusalError, match="does not exist"):
        google.create("projects/iAMMember:IAMMember", "agent", **grant, member=agent["member"])
    with pytest.raises(RefusalError, match=r"gcf-v2-sources-.* denied"):
        google.create("cloudfunctionsv2/function:Function", "stop", **function)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + iam_delay.DELAY_S)
    google.create("projects/iAMMember:IAMMember", "agent", **grant, member=agent["member"])
    google.create("cloudfunctionsv2/function:Function", "stop", **function)


def test_a_trigger_is_possible_some_time_after_eventarcs_agent_has_its_role(
    google: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger: dict[str, Any] = {"name": "stop", "location": "us-central1", "eventTrigger": {"eventType": "e"}}
    clock = [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[-1])
    for kind, name, inputs in EVENTARC:
        google.create(kind, name, **inputs)
        with pytest.raises(RefusalError, match="using the Eventarc Service Agent"):
            google.create("cloudfunctionsv2/function:Function", "stop", **trigger)
        clock.append(clock[-1] + 2 * iam_delay.DELAY_S)
    google.create("cloudfunctionsv2/function:Function", "stop", **trigger)


def test_the_first_question_for_the_agent_of_cloud_storage_creates_it(
    google: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant: dict[str, Any] = {"project": "research", "role": "roles/storage.objectViewer"}
    grant["member"] = google.invoke("storage/getProjectServiceAccount:getProjectServiceAccount")["member"]
    with pytest.raises(RefusalError, match="does not exist"):
        google.create("projects/iAMMember:IAMMember", "agent", **grant)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + iam_delay.DELAY_S)
    google.invoke("storage/getProjectServiceAccount:getProjectServiceAccount")
    google.create("projects/iAMMember:IAMMember", "agent", **grant)


@pytest.mark.parametrize(
    ("version", "edition"),
    [("POSTGRES_16", "ENTERPRISE_PLUS"), ("POSTGRES_15", "ENTERPRISE"), ("MYSQL_8_0", "ENTERPRISE")],
)
def test_the_default_edition_of_an_instance(google: Driver, version: str, edition: str) -> None:
    tier = "db-perf-optimized-N-2" if edition == "ENTERPRISE_PLUS" else "db-f1-micro"
    made = google.create(
        "sql/databaseInstance:DatabaseInstance", "db", databaseVersion=version, settings={"tier": tier}
    )
    assert made["settings"]["edition"] == edition


def test_databases_and_users_go_with_their_instance(google: Driver) -> None:
    google.create(
        "sql/databaseInstance:DatabaseInstance",
        "db",
        name="db",
        databaseVersion="MYSQL_8_0",
        deletionProtection=False,
        settings={"tier": "db-f1-micro"},
    )
    google.create("sql/database:Database", "mlflow", name="mlflow", instance="db")
    google.delete("db")
    assert google.state.find(type="gcp:sql/database:Database") == []


def test_metrics_log_buckets_and_backups_have_googles_ids(google: Driver) -> None:
    metric = google.create("logging/metric:Metric", "m", name="denied", filter="severity>=ERROR")
    assert metric["id"] == "denied" and metric["metricDescriptor"]["metricKind"] == "DELTA"
    log = google.create(
        "logging/projectBucketConfig:ProjectBucketConfig",
        "l",
        bucketId="_Default",
        location="global",
        project="research",
    )
    assert log["id"] == "projects/research/locations/global/buckets/_Default" == log["name"]
    share = google.create(
        "filestore/instance:Instance",
        "homes",
        name="homes",
        location="us-central1-a",
        tier="ZONAL",
        fileShares={"name": "home", "capacityGb": 1024},
        networks=[{"network": "default", "modes": ["MODE_IPV4"]}],
    )
    backup = google.create(
        "filestore/backup:Backup",
        "b",
        name="b",
        location="us-central1",
        sourceFileShare="home",
        sourceInstance=share["id"],
    )
    assert backup["id"] == "projects/research/locations/us-central1/backups/b"
    moved = google.diff(
        "b", name="b", location="us-central1", sourceFileShare="other", sourceInstance=share["id"]
    )
    assert moved.replaces == ("sourceFileShare",)


@pytest.mark.parametrize(
    ("type", "service"),
    [
        ("projects/service:Service", {"disableOnDestroy": False}),
        ("projects/serviceIdentity:ServiceIdentity", {}),
    ],
)
def test_an_api_of_two_stacks_stays_until_both_are_gone(
    google: Driver, type: str, service: dict[str, Any]
) -> None:
    for owner in ("one", "two"):
        google.create(type, owner, service="file.googleapis.com", **service)
    _, key, _, _ = google.made["two"]
    google.delete("one")
    assert google.get(type, key) and not any("the deletion of one" in said for said in google.said)
    google.delete("two")
    assert google.get(type, key) is None


def test_an_api_that_one_of_two_stacks_disables_is_gone_for_both(google: Driver) -> None:
    for owner in ("one", "two"):
        google.create("projects/service:Service", owner, service="file.googleapis.com", disableOnDestroy=True)
    google.delete("one")
    assert google.refresh("two") is None
