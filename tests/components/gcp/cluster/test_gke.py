"""The cluster: private, encrypted, upgraded when people want, with least rights."""

import datetime
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.gcp.cluster.gke import GcpCluster
from tests.components.gcp.cluster.clusters import (
    DEPLOYER,
    MAINTENANCE,
    PLATFORM,
    WITH_ADDRESS,
    ZONES,
    arguments,
    cluster,
)
from tests.components.gcp.computed import COMPUTED, PROJECT
from tests.components.graph import Graph, deploy_graph


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


def test_addons_and_interfaces_beside_eth0_are_a_choice(gke: Mapping[str, Any]) -> None:
    wanted = {"checkpoint_addon": True, "readiness_addon": True, "multi_networking": True}
    chosen = cluster(**wanted).find("container/cluster:Cluster")

    assert gke["addonsConfig"]["highScaleCheckpointingConfig"] == {"enabled": False}
    assert gke["enableMultiNetworking"] is False
    assert chosen["addonsConfig"]["highScaleCheckpointingConfig"] == {"enabled": True}
    assert gke["addonsConfig"]["nodeReadinessConfig"] == {"enabled": False}
    assert chosen["addonsConfig"]["nodeReadinessConfig"] == {"enabled": True}
    assert chosen["enableMultiNetworking"] is True


def test_gke_makes_no_pools_and_gives_idle_nodes_back_soon(gke: Mapping[str, Any]) -> None:
    assert gke["clusterAutoscaling"] == {"enabled": False, "autoscalingProfile": "OPTIMIZE_UTILIZATION"}


def test_the_default_class_is_a_choice(gke: Mapping[str, Any]) -> None:
    chosen = cluster(default_class=True).find("container/cluster:Cluster")

    assert chosen["clusterAutoscaling"] == {**gke["clusterAutoscaling"], "defaultComputeClassEnabled": True}


def test_kubelets_have_no_open_port_and_images_are_streamed(made: Graph, gke: Mapping[str, Any]) -> None:
    defaults = gke["nodePoolDefaults"]["nodeConfigDefaults"]

    assert defaults == {"gcfsConfig": {"enabled": True}, "insecureKubeletReadonlyPortEnabled": "FALSE"}
    kubelet = made.find("NodePool")["nodeConfig"]["kubeletConfig"]
    assert kubelet["insecureKubeletReadonlyPortEnabled"] == "FALSE"


def test_messages_and_protection_are_choices(gke: Mapping[str, Any]) -> None:
    topic = f"projects/{PROJECT}/topics/upgrades"
    made = cluster(notifications=topic, deletion_protection=True).find("container/cluster:Cluster")

    assert "notificationConfig" not in gke
    assert gke["deletionProtection"] is False
    assert made["deletionProtection"] is True
    assert made["notificationConfig"]["pubsub"]["topic"] == topic
    assert "SECURITY_BULLETIN_EVENT" in made["notificationConfig"]["pubsub"]["filter"]["eventTypes"]


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
