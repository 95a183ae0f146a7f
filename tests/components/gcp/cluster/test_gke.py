"""The cluster: private, encrypted, upgraded when people want, with least rights and a small system pool."""

import datetime
from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.gcp.cluster.cluster_args import GcpClusterArgs
from components.gcp.cluster.gke import GcpCluster
from infra.errors import UserError
from tests.components.gcp.computed import COMPUTED, NUMBER, PROJECT
from tests.components.graph import Graph, deploy_graph

DEPLOYER = "serviceAccount:deployer@ml-ci.iam.gserviceaccount.com"
PLATFORM = "group:platform@example.com"
MAINTENANCE = {"days": ["SA", "SU"], "start": "02:00", "hours": 6, "hold_nodes": True}
POOL = {"machine": "e2-standard-4", "min_nodes": 2, "max_nodes": 6}
WITH_ADDRESS = {"endpoint": "ip", "api_access": ["203.0.113.0/24", "198.51.100.7/32"]}
ZONES = ["us-central1-a", "us-central1-b", "us-central1-c"]


class Consumer(pulumi.CustomResource):
    def __init__(self, name: str, **inputs: pulumi.Input[Any]) -> None:
        super().__init__("test:index:Consumer", name, inputs)


def arguments(**changes: Any) -> GcpClusterArgs:
    args: dict[str, Any] = {
        "project": PROJECT,
        "project_number": NUMBER,
        "region": "us-central1",
        "name": "dev-gcp",
        "kubernetes_version": "1.35",
        "channel": "regular",
        "network": f"projects/{PROJECT}/global/networks/dev",
        "subnetwork": f"projects/{PROJECT}/regions/us-central1/subnetworks/dev",
        "pod_range_name": "pods",
        "service_range_name": "services",
        "zones": ZONES,
        "pods_per_node": 32,
        "endpoint": "dns",
        "api_access": [],
        "admins": [DEPLOYER, PLATFORM],
        "maintenance": MAINTENANCE,
        "log_retention_days": 45,
        "system_pool": POOL,
        "labels": {"owner": "ml"},
    }
    return cast(GcpClusterArgs, {**args, **changes})


def cluster(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpCluster("dev-cluster", arguments(**changes))
        Consumer("kubernetes-provider", endpoint=made.endpoint)
        Consumer("certificate", ca=made.certificate_authority)
        Consumer("gpu-nodes", account=made.node_service_account)
        Consumer("disk", key=made.key_id)
        Consumer("pod", pool=made.workload_pool)
        return {
            "name": made.cluster_name,
            "id": made.cluster_id,
            "location": made.location,
            "endpoint": made.endpoint,
            "ca": made.certificate_authority,
            "pool": made.workload_pool,
            "account": made.node_service_account,
            "key": made.key_id,
        }

    return deploy_graph(program, COMPUTED)


@pytest.fixture(scope="module")
def made() -> Graph:
    return cluster()


@pytest.fixture(scope="module")
def gke(made: Graph) -> Mapping[str, Any]:
    return made.find("container/cluster:Cluster")


def test_it_is_regional_with_nodes_where_the_layout_says(gke: Mapping[str, Any]) -> None:
    assert gke["location"] == "us-central1"
    assert gke["nodeLocations"] == ZONES
    assert "enableAutopilot" not in gke


def test_the_first_pool_goes_and_meanwhile_breaks_no_quota_and_no_policy(
    made: Graph, gke: Mapping[str, Any]
) -> None:
    first = gke["nodeConfig"]

    assert gke["removeDefaultNodePool"] is True
    assert gke["initialNodeCount"] == 1
    # pd-balanced counts as SSD, of which new projects have 250 GB in a region.
    assert first["diskType"] == "pd-standard"
    assert first["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert first["serviceAccount"] == made.outputs["account"]
    assert first["bootDiskKmsKey"] == made.outputs["key"]
    # What the provider reads back is another pool's, and a change would replace the cluster.
    assert made.ignored["Cluster:dev-cluster-cluster"] == [
        "nodeConfig",
        "defaultMaxPodsPerNode",
        "nodeLocations",
    ]


def test_pods_have_addresses_of_the_network_and_policies_are_enforced(gke: Mapping[str, Any]) -> None:
    assert gke["networkingMode"] == "VPC_NATIVE"
    assert gke["ipAllocationPolicy"]["clusterSecondaryRangeName"] == "pods"
    assert gke["ipAllocationPolicy"]["servicesSecondaryRangeName"] == "services"
    assert gke["defaultMaxPodsPerNode"] == 32
    assert gke["datapathProvider"] == "ADVANCED_DATAPATH"
    assert gke["addonsConfig"]["networkPolicyConfig"] == {"disabled": True}
    assert gke["enableIntranodeVisibility"] is True


def test_no_node_has_a_public_address(made: Graph, gke: Mapping[str, Any]) -> None:
    assert gke["privateClusterConfig"]["enablePrivateNodes"] is True
    assert made.find("NodePool")["networkConfig"]["enablePrivateNodes"] is True


def test_the_api_has_a_name_that_iam_guards_and_no_address(made: Graph, gke: Mapping[str, Any]) -> None:
    ends = gke["controlPlaneEndpointsConfig"]

    assert ends["ipEndpointsConfig"] == {"enabled": False}
    assert ends["dnsEndpointConfig"] == {
        "allowExternalTraffic": True,
        "enableK8sTokensViaDns": False,
        "enableK8sCertsViaDns": False,
    }
    assert "masterAuthorizedNetworksConfig" not in gke
    assert made.outputs["endpoint"] == "https://gke-0123456789ab-123456789012.us-central1.gke.goog"
    assert made.outputs["ca"] == ""


def test_or_an_address_for_named_ranges_and_no_name() -> None:
    made = cluster(**WITH_ADDRESS)
    gke = made.find("container/cluster:Cluster")
    named = gke["masterAuthorizedNetworksConfig"]

    assert gke["controlPlaneEndpointsConfig"]["ipEndpointsConfig"] == {"enabled": True}
    assert gke["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["allowExternalTraffic"] is False
    assert [one["cidrBlock"] for one in named["cidrBlocks"]] == WITH_ADDRESS["api_access"]
    # Every machine of every customer in Google Cloud could reach it otherwise.
    assert named["gcpPublicCidrsAccessEnabled"] is False
    assert made.outputs["endpoint"] == "https://34.1.2.3"
    assert made.outputs["ca"] == "Q0E="


def test_logins_are_iams_alone(gke: Mapping[str, Any]) -> None:
    assert gke["masterAuth"] == {"clientCertificateConfig": {"issueClientCertificate": False}}
    assert gke["enableLegacyAbac"] is False
    assert gke["anonymousAuthenticationConfig"] == {"mode": "LIMITED"}
    assert set(gke["rbacBindingConfig"].values()) == {False}
    assert gke["workloadIdentityConfig"] == {"workloadPool": f"{PROJECT}.svc.id.goog"}
    assert "authenticatorGroupsConfig" not in gke
    with_groups = cluster(groups="gke-security-groups@example.com").find("container/cluster:Cluster")
    assert with_groups["authenticatorGroupsConfig"] == {"securityGroup": "gke-security-groups@example.com"}


def test_admins_are_those_named_and_reordering_renames_none(made: Graph) -> None:
    def admins(graph: Graph) -> dict[str, str]:
        return {
            name: one["member"]
            for name, one in graph.all("IAMMember").items()
            if "container.admin" in one["role"]
        }

    assert set(admins(made).values()) == {DEPLOYER, PLATFORM}
    assert admins(cluster(admins=[PLATFORM, DEPLOYER])) == admins(made)


def test_nodes_have_the_documented_roles_and_no_more(made: Graph) -> None:
    account = made.find("serviceaccount/account:Account")
    roles = {one["role"] for one in made.all("IAMMember").values() if "dev-cluster-nodes@" in one["member"]}

    assert roles == {"roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader"}
    assert 6 <= len(account["accountId"]) <= 30
    assert made.find("NodePool")["nodeConfig"]["serviceAccount"] == made.outputs["account"]


def test_a_long_name_still_makes_an_account_that_iam_takes() -> None:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"account": GcpCluster("a" * 32 + "-cluster", arguments()).node_service_account}

    made = deploy_graph(program, COMPUTED)

    assert 6 <= len(made.find("serviceaccount/account:Account")["accountId"]) <= 30
    assert all(len(name) + 8 <= 40 for name in made.all("NodePool"))


def test_secrets_and_disks_are_encrypted_under_our_key_by_googles_own_services(
    made: Graph, gke: Mapping[str, Any]
) -> None:
    users = {one["member"].split("@")[1].split(".")[0] for one in made.all("CryptoKeyIAMMember").values()}

    assert gke["databaseEncryption"] == {"state": "ENCRYPTED", "keyName": made.outputs["key"]}
    assert made.find("NodePool")["nodeConfig"]["bootDiskKmsKey"] == made.outputs["key"]
    assert made.find("KeyRing")["location"] == "us-central1"
    assert users == {"container-engine-robot", "compute-system"}


def test_versions_come_from_a_channel_and_windows_are_in_the_night(gke: Mapping[str, Any]) -> None:
    window = gke["maintenancePolicy"]["recurringWindow"]

    assert gke["releaseChannel"] == {"channel": "REGULAR"}
    assert gke["minMasterVersion"] == "1.35"
    assert window["recurrence"] == "FREQ=WEEKLY;BYDAY=SA,SU"
    assert window["startTime"].endswith("T02:00:00Z")
    assert window["endTime"].endswith("T08:00:00Z")


@pytest.mark.parametrize(("start", "hours"), [("00:00", 24), ("22:30", 6), ("23:59", 24), ("02:00", 4)])
def test_a_window_is_as_long_as_asked_also_over_midnight(start: str, hours: int) -> None:
    days = ["FR", "SA", "SU"]
    asked = cluster(maintenance={**MAINTENANCE, "days": days, "start": start, "hours": hours})
    window = asked.find("container/cluster:Cluster")["maintenancePolicy"]["recurringWindow"]
    begin, end = (datetime.datetime.fromisoformat(window[name]) for name in ("startTime", "endTime"))

    assert end - begin == datetime.timedelta(hours=hours)
    assert begin.strftime("%H:%M") == start


def test_nodes_are_held_until_support_ends_if_asked(gke: Mapping[str, Any]) -> None:
    (held,) = gke["maintenancePolicy"]["maintenanceExclusions"]

    assert held["exclusionOptions"] == {
        "scope": "NO_MINOR_OR_NODE_UPGRADES",
        "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
    }
    # GKE takes an end or a behaviour, never both.
    assert "endTime" not in held
    free = cluster(maintenance={**MAINTENANCE, "hold_nodes": False}).find("container/cluster:Cluster")
    assert not free["maintenancePolicy"].get("maintenanceExclusions")


def test_the_same_wishes_describe_the_same_cluster_on_any_day(gke: Mapping[str, Any]) -> None:
    assert cluster().find("container/cluster:Cluster") == gke
    assert gke["maintenancePolicy"]["recurringWindow"]["startTime"] < "2026-11-25"


def test_gpus_jobs_and_pods_are_measured_and_the_control_plane_is_logged(gke: Mapping[str, Any]) -> None:
    metrics = gke["monitoringConfig"]

    assert {"SYSTEM_COMPONENTS", "DCGM", "JOBSET", "POD"} <= set(metrics["enableComponents"])
    assert metrics["managedPrometheus"]["enabled"] is True
    assert {"SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER"} <= set(gke["loggingConfig"]["enableComponents"])
    assert gke["costManagementConfig"] == {"enabled": True}
    assert gke["securityPostureConfig"]["mode"] == "BASIC"


def test_every_kind_of_storage_has_its_driver_and_nothing_opens_a_load_balancer(
    gke: Mapping[str, Any],
) -> None:
    addons = gke["addonsConfig"]

    for driver in ("gcePersistentDisk", "gcsFuse", "gcpFilestore", "lustre"):
        assert addons[f"{driver}CsiDriverConfig"]["enabled"] is True
    assert addons["dnsCacheConfig"] == {"enabled": True}
    assert addons["httpLoadBalancing"] == {"disabled": True}
    assert gke["gatewayApiConfig"] == {"channel": "CHANNEL_DISABLED"}
    assert gke["serviceExternalIpsConfig"] == {"enabled": False}


def test_checkpoints_in_memory_and_interfaces_beside_eth0_are_a_choice(gke: Mapping[str, Any]) -> None:
    chosen = cluster(checkpoint_addon=True, multi_networking=True).find("container/cluster:Cluster")

    assert gke["addonsConfig"]["highScaleCheckpointingConfig"] == {"enabled": False}
    assert gke["enableMultiNetworking"] is False
    assert chosen["addonsConfig"]["highScaleCheckpointingConfig"] == {"enabled": True}
    assert chosen["enableMultiNetworking"] is True


def test_gke_makes_no_pools_and_gives_idle_nodes_back_soon(gke: Mapping[str, Any]) -> None:
    assert gke["clusterAutoscaling"] == {"enabled": False, "autoscalingProfile": "OPTIMIZE_UTILIZATION"}


def test_kubelets_have_no_open_port_and_images_are_streamed(made: Graph, gke: Mapping[str, Any]) -> None:
    defaults = gke["nodePoolDefaults"]["nodeConfigDefaults"]

    assert defaults == {"gcfsConfig": {"enabled": True}, "insecureKubeletReadonlyPortEnabled": "FALSE"}
    kubelet = made.find("NodePool")["nodeConfig"]["kubeletConfig"]
    assert kubelet["insecureKubeletReadonlyPortEnabled"] == "FALSE"


def test_messages_and_protection_are_choices(gke: Mapping[str, Any]) -> None:
    topic = f"projects/{PROJECT}/topics/upgrades"
    told = cluster(notifications=topic, deletion_protection=True).find("container/cluster:Cluster")

    assert "notificationConfig" not in gke
    assert gke["deletionProtection"] is False
    assert told["deletionProtection"] is True
    assert told["notificationConfig"]["pubsub"]["topic"] == topic
    assert "SECURITY_BULLETIN_EVENT" in told["notificationConfig"]["pubsub"]["filter"]["eventTypes"]


def test_the_system_pool_is_small_on_demand_and_sized_over_all_zones(made: Graph) -> None:
    pool = made.find("NodePool")
    node = pool["nodeConfig"]

    assert pool["autoscaling"] == {
        "totalMinNodeCount": 2,
        "totalMaxNodeCount": 6,
        "locationPolicy": "BALANCED",
    }
    # A number per zone: 3 zones have to start with one each for 2 nodes to be there.
    assert pool["initialNodeCount"] == 1
    assert made.ignored["NodePool:dev-cluster-system"] == ["initialNodeCount"]
    assert "nodeCount" not in pool
    assert pool["nodeLocations"] == ZONES
    assert not {"spot", "preemptible", "flexStart", "guestAccelerators", "taints"} & set(node)
    assert node["machineType"] == "e2-standard-4"
    assert node["labels"] == {"trainstack.dev/pool": "system"}
    assert node["resourceLabels"] == {"owner": "ml"}


def test_the_system_pool_starts_with_enough_nodes_in_few_zones() -> None:
    one_zone = cluster(zones=ZONES[:1], system_pool={**POOL, "min_nodes": 3}).find("NodePool")
    two_zones = cluster(zones=ZONES[:2], system_pool={**POOL, "min_nodes": 3}).find("NodePool")

    assert one_zone["initialNodeCount"] == 3
    assert two_zones["initialNodeCount"] == 2


def test_system_nodes_are_hardened_and_upgrades_take_none_away(made: Graph) -> None:
    pool = made.find("NodePool")
    node = pool["nodeConfig"]

    assert node["shieldedInstanceConfig"] == {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
    assert node["workloadMetadataConfig"] == {"mode": "GKE_METADATA"}
    assert node["metadata"] == {"disable-legacy-endpoints": "true"}
    assert node["imageType"] == "COS_CONTAINERD"
    assert pool["upgradeSettings"] == {"strategy": "SURGE", "maxSurge": 1, "maxUnavailable": 0}
    assert pool["management"] == {"autoRepair": True, "autoUpgrade": True}


def test_system_nodes_have_room_for_gkes_agents_and_our_services() -> None:
    assert cluster(pods_per_node=16).find("NodePool")["maxPodsPerNode"] == 64
    assert cluster(pods_per_node=110).find("NodePool")["maxPodsPerNode"] == 110


def test_system_nodes_have_a_disk_that_their_series_takes(made: Graph) -> None:
    new = cluster(system_pool={**POOL, "machine": "n4-standard-4"}).find("NodePool")
    assert made.find("NodePool")["nodeConfig"]["diskType"] == "pd-balanced"
    assert new["nodeConfig"]["diskType"] == "hyperdisk-balanced"


def test_what_runs_on_the_cluster_goes_before_access_and_nodes(made: Graph) -> None:
    admins = {f"IAMMember:{name}" for name in made.all("IAMMember") if "-admin-" in name}

    assert len(admins) == 2
    assert {*admins, "NodePool:dev-cluster-system"} <= made.waits_for("Consumer:kubernetes-provider")
    other = cluster(**WITH_ADDRESS)
    for consumer in ("kubernetes-provider", "certificate"):
        assert {*admins, "NodePool:dev-cluster-system"} <= other.waits_for(f"Consumer:{consumer}")


def test_nodes_start_when_their_account_may_work_and_their_key_may_be_used(made: Graph) -> None:
    roles = {f"IAMMember:{name}" for name in made.all("IAMMember") if "-nodes-" in name}
    grants = {f"CryptoKeyIAMMember:{name}" for name in made.all("CryptoKeyIAMMember")}

    assert roles <= made.waits_for("Consumer:gpu-nodes")
    assert grants <= made.waits_for("Consumer:disk")
    assert roles | grants <= made.waits_for("Cluster:dev-cluster-cluster")
    # IAM refuses members of the pool before the first cluster of the project has made it.
    assert "Cluster:dev-cluster-cluster" in made.waits_for("Consumer:pod")


def test_outputs_are_what_consumers_need(made: Graph) -> None:
    assert made.outputs["name"] == "dev-gcp"
    assert made.outputs["location"] == "us-central1"
    assert made.outputs["pool"] == f"{PROJECT}.svc.id.goog"
    assert made.outputs["account"] == f"dev-cluster-nodes@{PROJECT}.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"name": "dev_gcp"}, ["name"]),
        ({"name": "a" * 41}, ["name"]),
        ({"zones": []}, ["zones"]),
        ({"zones": ["us-central1-a", "us-central1-a"]}, ["zones"]),
        ({"zones": ["us-central1-z", "europe-west4-a"]}, ["zones[0]", "zones[1]"]),
        ({"channel": "None"}, ["channel"]),
        ({"endpoint": "public"}, ["endpoint"]),
        ({"api_access": ["203.0.113.0/24"]}, ["api_access"]),
        ({"endpoint": "ip"}, ["api_access"]),
        ({"endpoint": "ip", "api_access": ["0.0.0.0/0"]}, ["api_access[0]"]),
        ({"endpoint": "ip", "api_access": ["10.0.0.0/8", "office"]}, ["api_access[1]"]),
        ({"endpoint": "ip", "api_access": [f"203.0.113.{n}/32" for n in range(101)]}, ["api_access"]),
        ({"admins": []}, ["admins"]),
        ({"admins": [PLATFORM, PLATFORM]}, ["admins"]),
        ({"admins": ["platform@example.com", "allUsers"]}, ["admins[0]", "admins[1]"]),
        ({"maintenance": {**MAINTENANCE, "days": ["SA"], "hours": 6}}, ["maintenance.hours"]),
        ({"maintenance": {**MAINTENANCE, "days": [], "hours": 24}}, ["maintenance.hours"]),
        ({"groups": "ml@example.com"}, ["groups"]),
        ({"system_pool": {**POOL, "min_nodes": 7}}, ["system_pool.min_nodes"]),
        ({"system_pool": {**POOL, "min_nodes": 0, "max_nodes": 0}}, ["system_pool.max_nodes"]),
        ({"system_pool": {**POOL, "machine": "a3-megagpu-8g"}}, ["system_pool.machine"]),
        ({"system_pool": {**POOL, "machine": "e2-standard-5"}}, ["system_pool.machine"]),
        ({"name": "", "admins": [], "channel": "", "zones": []}, ["name", "zones", "channel", "admins"]),
    ],
)
def test_what_gke_or_a_security_review_would_refuse_is_refused(
    changes: dict[str, Any], paths: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        cluster(**changes)

    assert [problem.path for problem in refused.value.problems] == paths


def test_the_shortest_windows_that_gke_takes_are_accepted() -> None:
    cluster(maintenance={**MAINTENANCE, "days": ["SA"], "hours": 12})
    with pytest.raises(UserError) as refused:
        cluster(maintenance={**MAINTENANCE, "days": ["SA", "SU"], "hours": 5})

    assert "8 windows of 5 hours in 32 days are 40 hours" in refused.value.problems[0].rule
    assert "Set 6 hours" in refused.value.problems[0].fix
