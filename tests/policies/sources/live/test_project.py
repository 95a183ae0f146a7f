"""Resources of a project without a recorded example, and outcomes of rules for them."""

import importlib
from collections.abc import Mapping
from typing import Any

import pytest

from policies.evaluate import evaluate
from policies.resource import Resource, is_unknown
from policies.rules import CATALOG
from policies.settings import RuleSettings
from policies.sources.live.records import LiveAccount, account
from policies.stack import Stack
from tests.policies.sources.live.google_fields import held
from tests.policies.sources.live.sdk_shapes import state_of, strange
from tests.trainstack.collect.project import BILLING, ID, NUMBER, Project, denied
from trainstack.collect.gcp.project import collect

_HERE = f"projects/{ID}/locations/us-central1"
_COMPUTE = "https://www.googleapis.com/compute/v1/projects/example"


def asset(project: Project, kind: str, path: str, data: dict[str, Any], host: str = "") -> None:
    project.add(kind, f"//{host or kind.partition('/')[0]}/{path}", data)


def _machines(project: Project) -> None:
    machine = {
        "name": "node-1",
        "labels": {"goog-gke-node": "", "goog-k8s-cluster-name": "train"},
        "machineType": f"{_COMPUTE}/zones/us-central1-a/machineTypes/g2-standard-4",
        "metadata": {"items": [{"key": "startup-script", "value": "join --token s3cr3t"}]},
        "selfLink": f"{_COMPUTE}/zones/us-central1-a/instances/node-1",
        "zone": f"{_COMPUTE}/zones/us-central1-a",
    }
    asset(
        project,
        "compute.googleapis.com/Instance",
        f"projects/{ID}/zones/us-central1-a/instances/node-1",
        machine,
    )
    disk = {
        "name": "scratch",
        "diskEncryptionKey": {"kmsKeyName": f"{_HERE}/keyRings/r/cryptoKeys/k", "rawKey": "s3cr3t"},
        "labels": {"owner": "ml"},
        "sizeGb": "500",
        "type": f"{_COMPUTE}/zones/europe-west4-a/diskTypes/pd-ssd",
        "zone": f"{_COMPUTE}/zones/europe-west4-a",
    }
    asset(project, "compute.googleapis.com/Disk", f"projects/{ID}/zones/europe-west4-a/disks/scratch", disk)


def _files(project: Project) -> None:
    name = f"projects/{ID}/locations/us-central1-a/instances/homes"
    asset(project, "file.googleapis.com/Instance", name, {"name": name, "tier": "ZONAL", "labels": {}})
    backup = {"name": f"{_HERE}/backups/b", "sourceInstance": name}
    asset(project, "file.googleapis.com/Backup", backup["name"], backup)
    for name, more in (("open", {}), ("keyed", {"kmsKey": f"{_HERE}/keyRings/r/cryptoKeys/k"})):
        path = f"projects/{ID}/locations/us-central1-a/instances/{name}"
        data = {"name": path, "filesystem": "train", "capacityGib": "18000", **more}
        asset(project, "lustre.googleapis.com/Instance", path, data)
    path = f"projects/{NUMBER}/locations/us-central1-a/instances/fast"
    project.rows[f"parallelstore/v1/projects/{ID}/locations/-/instances"] = [
        {"name": path, "capacityGib": "12000"}
    ]


def _secrets(project: Project) -> None:
    replications: dict[str, dict[str, Any]] = {
        "anywhere": {"automatic": {}},
        "here": {"userManaged": {"replicas": [{"location": "us-central1"}]}},
    }
    for name, replication in replications.items():
        path = f"projects/{NUMBER}/secrets/{name}"
        data = {"name": path, "replication": replication, "annotations": {"note": "s3cr3t"}}
        asset(project, "secretmanager.googleapis.com/Secret", path, data)
    path = f"projects/{NUMBER}/locations/us-central1/secrets/regional"
    asset(project, "secretmanager.googleapis.com/Secret", path, {"name": path})
    dataset = {"datasetReference": {"datasetId": "features", "projectId": ID}, "location": "US"}
    asset(project, "bigquery.googleapis.com/Dataset", f"projects/{ID}/datasets/features", dataset)
    ring = f"{_HERE}/keyRings/r"
    for name, state in (("gone", "DESTROYED"), ("kept", "ENABLED")):
        data = {
            "name": f"{ring}/cryptoKeys/{name}",
            "purpose": "ENCRYPT_DECRYPT",
            "primary": {"state": state},
        }
        asset(project, "cloudkms.googleapis.com/CryptoKey", str(data["name"]), data)


def _identities(project: Project) -> None:
    pool = f"projects/{NUMBER}/locations/global/workloadIdentityPools/ci"
    for name, more in (
        ("open", {}),
        ("closed", {"attributeCondition": "assertion.repository_owner_id == '1'"}),
        ("gone", {"state": "DELETED"}),
    ):
        data = {"name": f"{pool}/providers/{name}", "oidc": {"issuerUri": "https://ci.example"}, **more}
        asset(project, "iam.googleapis.com/WorkloadIdentityPoolProvider", str(data["name"]), data)
    mail = f"{NUMBER}-compute@developer.gserviceaccount.com"
    data = {"name": f"projects/{ID}/serviceAccounts/{mail}", "email": mail}
    asset(project, "iam.googleapis.com/ServiceAccount", f"projects/{ID}/serviceAccounts/11", data)
    for name, kind in (("ours", "USER_MANAGED"), ("google", "SYSTEM_MANAGED")):
        path = f"projects/{ID}/serviceAccounts/{mail}/keys/{name}"
        asset(project, "iam.googleapis.com/ServiceAccountKey", path, {"name": path, "keyType": kind})
    key = {"accessId": "GOOG1", "serviceAccountEmail": mail, "state": "ACTIVE"}
    project.rows[f"storage/storage/v1/projects/{ID}/hmacKeys"] = [key]
    members = [f"serviceAccount:{NUMBER}@cloudservices.gserviceaccount.com"]
    project.policy["bindings"].append({"role": "roles/editor", "members": members})
    project.policy["auditConfigs"] = [
        {"service": "allServices", "auditLogConfigs": [{"logType": "DATA_READ"}]}
    ]
    project.above = [("folder", "12"), ("organization", "34")]
    project.above_policy["bindings"].append({"role": "roles/owner", "members": ["group:admins@example.com"]})


def _watching(project: Project) -> None:
    for name in ("_Default", "_Required", "audit"):
        sink = {"name": name, "destination": f"logging.googleapis.com/{_HERE}/buckets/{name}"}
        asset(project, "logging.googleapis.com/LogSink", f"projects/{NUMBER}/sinks/{name}", sink)
        path = f"projects/{NUMBER}/locations/global/buckets/{name}"
        days = {"_Required": 400}.get(name, 30)
        bucket = {"name": path, "retentionDays": days, "lifecycleState": "ACTIVE"}
        asset(project, "logging.googleapis.com/LogBucket", path, bucket)
    above = {"name": "copy", "destination": "storage.googleapis.com/elsewhere", "includeChildren": True}
    project.rows["logging/v2/folders/12/sinks"] = [above]
    project.rows["logging/v2/organizations/34/sinks"] = [{**above, "name": "_Required"}]
    alert = {
        "name": f"projects/{ID}/alertPolicies/7",
        "displayName": "idle GPUs",
        "enabled": True,
        "combiner": "OR",
        "conditions": [
            {"displayName": "idle", "conditionPrometheusQueryLanguage": {"query": "DCGM_FI_DEV_GPU_UTIL < 5"}}
        ],
    }
    asset(project, "monitoring.googleapis.com/AlertPolicy", str(alert["name"]), alert)
    project.rows[f"billingbudgets/v1/{BILLING}/budgets"] = [
        {"name": f"{BILLING}/budgets/{name}", "displayName": name, "budgetFilter": chosen}
        for name, chosen in (
            ("all", {}),
            ("own", {"projects": [f"projects/{NUMBER}"]}),
            ("folder", {"resourceAncestors": ["folders/12"]}),
            ("other", {"projects": ["projects/1"]}),
            ("away", {"resourceAncestors": ["folders/99"]}),
        )
    ]


@pytest.fixture(scope="module")
def project() -> Project:
    made = Project()
    for fill in (_machines, _files, _secrets, _identities, _watching):
        fill(made)
    assert not held(made)
    return made


@pytest.fixture(scope="module")
def reported(project: Project) -> LiveAccount:
    found = account(collect(ID, project.session()))
    assert not found.coverage.refused
    return found


def ids(reported: LiveAccount, kind: str) -> list[str]:
    return [str(one.resource.id) for one in reported.found if one.resource.kind == kind]


def one(reported: LiveAccount, kind: str, end: str = "") -> Resource:
    (found,) = [one for one in reported.resources if one.kind == kind and str(one.id).endswith(end)]
    return found


def results(reported: LiveAccount, rule: str, **settings: Any) -> Mapping[str, str]:
    stack = Stack(reported.resources, RuleSettings(**settings), reported.coverage)
    return {
        str(one.resource.id) if one.resource else "": one.result
        for one in evaluate(stack, [CATALOG.rules[rule]])
    }


def test_everything_is_as_the_sdk_has_it(reported: LiveAccount) -> None:
    importlib.import_module("pulumi_gcp")
    for one in reported.resources:
        properties, objects = state_of(one.kind)
        assert not list(strange(one.props, properties, objects, one.kind))
        assert one.account == ID
        assert "None" not in str(one.id)


def test_ids_are_those_of_the_provider(reported: LiveAccount) -> None:
    """Also where an API has the number of the project, or a unique id."""
    mail = f"{NUMBER}-compute@developer.gserviceaccount.com"
    assert ids(reported, "gcp:serviceaccount/account:Account") == [f"projects/{ID}/serviceAccounts/{mail}"]
    assert ids(reported, "gcp:secretmanager/secret:Secret") == [
        f"projects/{ID}/secrets/{n}" for n in ("anywhere", "here")
    ]
    assert ids(reported, "gcp:parallelstore/instance:Instance") == [
        f"projects/{ID}/locations/us-central1-a/instances/fast"
    ]
    assert ids(reported, "gcp:logging/projectSink:ProjectSink") == [
        f"projects/{ID}/sinks/{n}" for n in ("_Default", "audit")
    ]
    assert ids(reported, "gcp:logging/folderSink:FolderSink") == ["folders/12/sinks/copy"]
    assert ids(reported, "gcp:folder/iAMBinding:IAMBinding") == ["folders/12/roles/owner"]
    assert ids(reported, "gcp:organizations/iAMBinding:IAMBinding") == ["34/roles/owner"]
    assert ids(reported, "gcp:projects/iAMAuditConfig:IAMAuditConfig") == [f"{ID}/audit_config/allServices"]


def test_unchangeable_and_unusable_resources_are_excluded(reported: LiveAccount) -> None:
    buckets = ids(reported, "gcp:logging/projectBucketConfig:ProjectBucketConfig")
    assert [path.rpartition("/")[2] for path in buckets] == ["_Default", "audit"]
    assert not ids(reported, "gcp:logging/organizationSink:OrganizationSink")
    assert [path.rpartition("/")[2] for path in ids(reported, "gcp:kms/cryptoKey:CryptoKey")] == ["kept"]
    assert [path.rpartition("/")[2] for path in ids(reported, "gcp:serviceaccount/key:Key")] == ["ours"]
    assert len(ids(reported, "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider")) == 2


def test_budgets_are_those_that_cover_the_project(reported: LiveAccount) -> None:
    names = [
        one.props["displayName"] for one in reported.resources if one.kind == "gcp:billing/budget:Budget"
    ]
    assert names == ["all", "own", "folder"]


def test_what_services_make_is_known(reported: LiveAccount) -> None:
    made = {one.resource.name for one in reported.found if one.made_by_service}
    assert made == {"node-1", "_Default", f"{NUMBER}-compute@developer.gserviceaccount.com"}


def test_the_default_network_is_seen() -> None:
    """Its rules allow the whole internet, and no service marks them as its own."""
    own = Project()
    network = f"{_COMPUTE}/global/networks/default"
    for name, port in (("default-allow-ssh", "22"), ("gke-train-1-all", "1-65535")):
        rule = {
            "name": name, "direction": "INGRESS", "network": network, "sourceRanges": ["0.0.0.0/0"],
            "allowed": [{"IPProtocol": "tcp", "ports": [port]}],
        }  # fmt: skip
        asset(own, "compute.googleapis.com/Firewall", f"projects/{ID}/global/firewalls/{name}", rule)
    assert not held(own)
    reported = account(collect(ID, own.session()))
    assert [one.made_by_service for one in reported.found] == [False, True]
    assert set(results(reported, "MLS-NET-07").values()) == {"fail"}


def test_rules_have_the_same_outcome_for_project_and_state(reported: LiveAccount) -> None:
    assert results(reported, "MLS-STO-05") == {
        f"projects/{ID}/locations/us-central1-a/instances/open": "fail",
        f"projects/{ID}/locations/us-central1-a/instances/keyed": "pass",
    }
    trust = results(reported, "MLS-IAM-04")
    pool = f"projects/{ID}/locations/global/workloadIdentityPools/ci/providers"
    assert (trust[f"{pool}/open"], trust[f"{pool}/closed"]) == ("fail", "pass")
    rights = results(reported, "MLS-IAM-01")
    assert rights[f"{ID}/roles/editor"] == "pass"
    assert rights["folders/12/roles/owner"] == rights["34/roles/owner"] == "fail"
    copies = results(reported, "MLS-RES-02", allowed_regions=("us-central1",))
    assert copies[f"projects/{ID}/secrets/anywhere"] == "fail"
    assert copies[f"projects/{ID}/secrets/here"] == "pass"
    assert copies["folders/12/sinks/copy"] == "undetermined"
    places = results(reported, "MLS-RES-01", allowed_regions=("us-central1",))
    assert places[f"projects/{ID}/zones/europe-west4-a/disks/scratch"] == "fail"
    assert places[f"projects/{ID}/zones/us-central1-a/instances/node-1"] == "pass"
    assert results(reported, "MLS-IAM-03")[f"projects/{ID}/hmacKeys/GOOG1"] == "fail"
    assert results(reported, "MLS-COST-07")[f"projects/{ID}/locations/global/buckets/audit"] == "pass"


def test_the_size_of_a_pool_that_does_not_scale_is_of_its_groups() -> None:
    """`initialNodeCount` is what it was made with."""
    own = Project()
    group = f"{_COMPUTE}/zones/us-central1-a/instanceGroupManagers/g"
    path = f"projects/{ID}/zones/us-central1-a/clusters/c/nodePools/p"
    pool = {"name": "p", "initialNodeCount": 1, "instanceGroupUrls": [group], "config": {}}
    asset(own, "container.googleapis.com/NodePool", path, pool)
    manager = {"name": "g", "selfLink": group, "targetSize": 9}
    asset(own, "compute.googleapis.com/InstanceGroupManager", group.partition("/v1/")[2], manager)
    assert not held(own)
    kind = "gcp:container/nodePool:NodePool"
    assert one(account(collect(ID, own.session())), kind).props["nodeCount"] == 9
    own.said["compute.googleapis.com/InstanceGroupManager"] = denied
    assert is_unknown(one(account(collect(ID, own.session())), kind).raw("nodeCount"))


def test_pools_of_autopilot_are_of_google() -> None:
    own = Project()
    path = f"projects/{ID}/locations/us-central1/clusters/c"
    data = {"name": "c", "location": "us-central1", "autopilot": {"enabled": True}}
    asset(own, "container.googleapis.com/Cluster", path, data)
    asset(own, "container.googleapis.com/NodePool", f"{path}/nodePools/p", {"name": "p", "config": {}})
    reported = account(collect(ID, own.session()))
    assert [one.kind for one in reported.resources] == ["gcp:container/cluster:Cluster"]
    assert reported.resources[0].props["enableAutopilot"] is True


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"masterAuthorizedNetworksConfig": {"enabled": True}}, "pass"),
        ({"masterAuthorizedNetworksConfig": {"cidrBlocks": [{"cidrBlock": "192.0.2.0/24"}]}}, "fail"),
        ({"masterAuthorizedNetworksConfig": {}}, "fail"),
        ({"controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}}}, "pass"),
        ({"controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enablePublicEndpoint": False}}}, "pass"),
        ({"controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enablePublicEndpoint": True}}}, "fail"),
        (
            {
                "controlPlaneEndpointsConfig": {
                    "ipEndpointsConfig": {
                        "authorizedNetworksConfig": {
                            "enabled": True,
                            "cidrBlocks": [{"cidrBlock": "0.0.0.0/0"}],
                        }
                    }
                }
            },
            "fail",
        ),
    ],
)
def test_who_reaches_the_endpoint_of_a_cluster(named: dict[str, Any], said: str) -> None:
    """Disabled authorized networks do not restrict access."""
    own = Project()
    path = f"projects/{ID}/locations/us-central1/clusters/c"
    asset(own, "container.googleapis.com/Cluster", path, {"name": "c", "location": "us-central1", **named})
    assert not held(own)
    assert results(account(collect(ID, own.session())), "MLS-NET-05") == {path: said}
