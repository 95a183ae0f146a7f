"""Checks of every variant of a stack on Google Cloud, as by an expert."""

import ipaddress
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import requests

from components.kubernetes.queueing.kueue import GATE_NAMESPACE
from infra.catalog.gcp import deploying, facts
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from tests.components.graph import Graph
from trainstack.preflight.gcp import apis, permissions
from trainstack.preflight.gcp.needs import needs
from trainstack.preflight.gcp.project import Project

_EVERYONE = ("allUsers", "allAuthenticatedUsers")
# Roles on the whole project, and what kind of principal may have them.
_SCHEMA = (
    "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/"
    "example-ml-dev.svc.id.goog/subject/ns/trainstack-schema/sa/schema"
)
_OF_A_PROJECT = {
    "roles/container.admin": ("user:", "group:", "serviceAccount:"),
    "roles/container.clusterViewer": ("user:", "group:"),
    "roles/container.defaultNodeServiceAccount": ("serviceAccount:dev-cluster-nodes@",),
    "roles/artifactregistry.reader": ("serviceAccount:dev-cluster-nodes@",),
    "roles/cloudsql.instanceUser": ("serviceAccount:dev-tracking-mlflow@",),
    "projects/ml-train-prod/roles/dev_tracking_backups": (_SCHEMA,),
    "projects/ml-train-prod/roles/dev_storage_lustre_copies": ("serviceAccount:dev-storage-lustre-copies@",),
}
# Where a type says which key encrypts it.
_KEYED = {
    "Bucket": ("encryption", "defaultKmsKeyName"),
    "NodePool": ("nodeConfig", "bootDiskKmsKey"),
    "DatabaseInstance": ("encryptionKeyName",),
}


def nothing_is_public(graph: Graph, _: StackSpec) -> None:
    everything = json.dumps([dict(asked.properties) for asked in graph.cloud.asked], default=str)
    assert not any(name in everything for name in _EVERYONE)
    for bucket in graph.all("storage/bucket:Bucket").values():
        assert bucket["publicAccessPrevention"] == "enforced" and bucket["uniformBucketLevelAccess"]
    for database in graph.all("DatabaseInstance").values():
        addresses = database["settings"]["ipConfiguration"]
        assert addresses["ipv4Enabled"] is False and addresses["privateNetwork"]
        assert addresses["sslMode"] in ("ENCRYPTED_ONLY", "TRUSTED_CLIENT_CERTIFICATE_REQUIRED")
    for pool in graph.all("NodePool").values():
        assert pool["networkConfig"]["enablePrivateNodes"]
        assert pool["nodeConfig"]["workloadMetadataConfig"]["mode"] == "GKE_METADATA"
    for address in graph.all("GlobalAddress").values():
        assert address["addressType"] == "INTERNAL"
    assert not graph.all("compute/address:Address")
    for rule in graph.all("Firewall").values():
        if rule["direction"] == "INGRESS":
            assert all(ipaddress.ip_network(one).is_private for one in rule["sourceRanges"])
    for service in graph.all("core/v1:Service").values():
        assert service["spec"].get("type", "ClusterIP") == "ClusterIP"


def the_api_is_reached_in_one_guarded_way(graph: Graph, spec: StackSpec) -> None:
    cluster = graph.find("container/cluster:Cluster")
    ways = cluster["controlPlaneEndpointsConfig"]
    by_name = ways["dnsEndpointConfig"]["allowExternalTraffic"]
    assert by_name != ways["ipEndpointsConfig"]["enabled"]
    assert isinstance(spec.layout, ClusterLayout)
    admitted = cluster.get("masterAuthorizedNetworksConfig", {}).get("cidrBlocks", [])
    assert [one["cidrBlock"] for one in admitted] == list(spec.layout.api_access)
    assert by_name != bool(admitted)
    # Who comes is for IAM to say: no client certificate, no token in what the Kubernetes provider is given.
    provider = graph.find("providers:kubernetes")
    (user,) = json.loads(provider["kubeconfig"])["users"]
    assert list(user["user"]) == ["exec"]
    # With another address or authority it stays the same cluster: nothing in it is replaced.
    assert provider["clusterIdentifier"].endswith(".gke.goog")


def what_is_kept_has_a_key_of_ours(graph: Graph, _: StackSpec) -> None:
    cluster = graph.find("container/cluster:Cluster")
    keys = {f"{name}-id" for name in graph.all("CryptoKey")}
    used = {cluster["databaseEncryption"]["keyName"]}
    assert cluster["databaseEncryption"]["state"] == "ENCRYPTED"
    for ending, path in _KEYED.items():
        for name, found in graph.all(ending).items():
            value: Any = found
            for step in path:
                value = value[step]
            used.add(value)
            # A service that may not use the key yet would fail, or take one of Google's.
            before = graph.waits_for(f"{ending}:{name}")
            assert any(f"CryptoKey:{value.removesuffix('-id')}" == one for one in before), name
            assert any(one.startswith("CryptoKeyIAMMember:") for one in before), name
    homes = [share for name, share in graph.all("filestore/instance:Instance").items()]
    used |= {share["kmsKeyName"] for share in homes}
    for secret in graph.all("secretmanager/secret:Secret").values():
        (copy,) = secret["replication"]["userManaged"]["replicas"]
        used.add(copy["customerManagedEncryption"]["kmsKeyName"])
    assert used == keys


def rights_are_few(graph: Graph, spec: StackSpec) -> None:
    for right in graph.all("projects/iAMMember:IAMMember").values():
        assert right["member"].startswith(_OF_A_PROJECT[right["role"]]), right
    assert isinstance(spec.on, GcpSpec)
    admins = {
        right["member"]
        for right in graph.all("projects/iAMMember:IAMMember").values()
        if right["role"] == "roles/container.admin"
    }
    assert admins == set(spec.on.admins)
    # A binding or a policy would take the rights of others away.
    replacing = ("IAMBinding", "IamBinding", "IAMPolicy", "IamPolicy")
    assert not [asked.type for asked in graph.cloud.asked if asked.type.endswith(replacing)]
    # Pods are called by their Kubernetes service account, and no key of an account leaves Google.
    assert not graph.all("serviceaccount/key:Key")
    given = Counter[str]()
    for right in graph.all("ManagedFolderIamMember").values():
        namespace = right["member"].partition("/subject/ns/")[2].partition("/")[0]
        if namespace == GATE_NAMESPACE:
            assert right["managedFolder"] == "smoke/", right
        elif namespace != "mlflow":
            given[namespace] += 1
            own = namespace.removeprefix("team-")
            assert right["managedFolder"] in ("shared/", f"teams/{own}/"), right
            written = right["role"] == "roles/storage.objectUser"
            assert not (written and right["managedFolder"] == "shared/")
    assert set(given) == {team_namespace(team.name) for team in spec.teams}


def protection_is_what_the_spec_says(graph: Graph, spec: StackSpec) -> None:
    wanted = spec.data.protect
    protected = [
        graph.find("container/cluster:Cluster")["deletionProtection"],
        graph.find("DatabaseInstance")["deletionProtection"],
        graph.find("DatabaseInstance")["settings"]["deletionProtectionEnabled"],
        *(share["deletionProtectionEnabled"] for share in graph.all("filestore/instance:Instance").values()),
        *(graph.requests[f"Instance:{name}"].protect for name in graph.all("lustre/instance:Instance")),
    ]
    assert set(protected) == {wanted}
    emptied = {bucket.get("forceDestroy", False) for bucket in graph.all("storage/bucket:Bucket").values()}
    assert emptied == {spec.data.on_destroy == "discard" and not wanted}


def machines_are_labelled_and_watched(graph: Graph, spec: StackSpec) -> None:
    defaults = graph.find("providers:gcp")["defaultLabels"]
    everywhere = json.loads(defaults) if isinstance(defaults, str) else defaults
    for name, pool in graph.all("NodePool").items():
        assert pool["nodeConfig"]["resourceLabels"] == everywhere, name
    budget = graph.find("billing/budget:Budget")
    ((key, value),) = budget["budgetFilter"]["labels"].items()
    assert everywhere[key] == value
    mailed = {channel["labels"]["email_address"] for channel in graph.all("NotificationChannel").values()}
    assert mailed == set(spec.budget.alert_emails)
    assert len(budget["allUpdatesRule"]["monitoringNotificationChannels"]) == len(spec.budget.alert_emails)
    assert all(policy["notificationChannels"] for policy in graph.all("AlertPolicy").values())
    # Each topic has a publisher.
    received = {right["topic"].removesuffix("-id") for right in graph.all("TopicIAMMember").values()}
    assert received == set(graph.all("pubsub/topic:Topic"))


def apis_come_first_and_nodes_have_their_networks(graph: Graph, spec: StackSpec) -> None:
    switched_on = {f"Service:{name}" for name in graph.all("projects/service:Service")}
    cluster = graph.find("container/cluster:Cluster")
    pools = graph.all("NodePool")
    for asked in graph.cloud.asked:
        if asked.type.startswith("gcp:") and "Service" not in asked.type.rpartition(":")[2]:
            key = f"{asked.type.rpartition(':')[2]}:{asked.name}"
            assert switched_on <= graph.created_after(key), asked.name
    beside = {
        name: len(pool["networkConfig"].get("additionalNodeNetworkConfigs", ()))
        for name, pool in pools.items()
    }
    assert cluster["enableMultiNetworking"] == any(beside.values())
    for name, count in beside.items():
        wanted = facts.gpu_networks.get(pools[name]["nodeConfig"]["machineType"])
        assert count in ((0, wanted.total) if wanted else (0,)), name


def the_preflight_asks_for_what_is_made(graph: Graph, spec: StackSpec) -> None:
    types = Counter(asked.type for asked in graph.cloud.asked)
    permissions_are_those_of(types, spec)
    names = {one["service"] for one in graph.all("projects/service:Service").values()}
    assert names == set(apis.wanted(_project(spec)))
    wanted = Counter[str]()
    for demand in needs(spec).most:
        wanted[demand.key] += int(demand.amount)
    assert wanted["networks"] == types["gcp:compute/network:Network"] + sum(_made_by_gke(graph))
    assert wanted["in_use_addresses"] == types["gcp:compute/routerNat:RouterNat"]
    shares = graph.all("filestore/instance:Instance").values()
    assert wanted["filestore_gib"] == sum(share["fileShares"]["capacityGb"] for share in shares)


def permissions_are_those_of(types: Iterable[str], spec: StackSpec) -> None:
    """The preflight asks for what these types take of the project, and for nothing else."""
    known = deploying.permissions()
    tokens = {"kubernetes:" if token.startswith("kubernetes:") else token for token in types}
    made = [known[token] for token in tokens if token.startswith(("gcp:", "kubernetes:")) or token in known]
    taken = {one for row in made if row.on == "project" for one in row.permissions}
    assert permissions.permissions(spec) == sorted(taken)


def _made_by_gke(graph: Graph) -> Iterator[int]:
    """Networks of a pool that GKE makes by itself; they count as those of the stack do."""
    for pool in graph.all("NodePool").values():
        row = facts.gpu_networks.get(pool["nodeConfig"]["machineType"])
        if row and pool["networkConfig"].get("acceleratorNetworkProfile") == "auto":
            yield row.networks + (row.rdma_subnetworks > 0)


def _project(spec: StackSpec) -> Project:
    assert isinstance(spec.layout, ClusterLayout) and isinstance(spec.on, GcpSpec)
    return Project(spec, spec.layout, spec.on, requests.Session())


def counted(graph: Graph) -> Mapping[str, int]:
    """Items of the estimate that say how many there are, by what is made."""
    return {"KMS keys": len(graph.all("CryptoKey")), "secrets": len(graph.all("secretmanager/secret:Secret"))}


CHECKS = (
    nothing_is_public,
    the_api_is_reached_in_one_guarded_way,
    what_is_kept_has_a_key_of_ours,
    rights_are_few,
    protection_is_what_the_spec_says,
    machines_are_labelled_and_watched,
    apis_come_first_and_nodes_have_their_networks,
    the_preflight_asks_for_what_is_made,
)
