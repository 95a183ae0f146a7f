"""APIs, policies, quotas and scarce machines of a project, with the services' errors."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rehearsal.accounts import project_number
from rehearsal.core.faults import Faults, parse
from rehearsal.core.model import InitFailedError, RefusalError
from rehearsal.gcp import limits
from rehearsal.gcp.limits import Limited
from tests.rehearsal.gcp.harness import Driver

CLUSTER, POOL = "container/cluster:Cluster", "container/nodePool:NodePool"
SERVICE, NETWORK = "projects/service:Service", "compute/network:Network"
NOTEBOOK, NOTEBOOKS = "workbench/instance:Instance", {"location": "us-central1-a", "gceSetup": {}}
SCENARIO = Path(__file__).parents[3] / "rehearsal/scenarios/new-project.yaml"
BASE: dict[str, Any] = {"name": "gke", "location": "us-central1-a", "initialNodeCount": 1}


@pytest.fixture
def project(google: Driver, tmp_path: Path) -> Driver:
    google.cloud = Limited(google.cloud, google.state, tmp_path / "faults.json")
    return google


def given(google: Driver, **scenario: Any) -> None:
    (google.state.path.parent / "faults.json").write_text(json.dumps(scenario))


def pool(google: Driver, name: str, machine: str, count: int, **more: Any) -> dict[str, Any]:
    config = {"machineType": machine, "diskType": "pd-standard", **more.pop("node", {})}
    return google.create(
        POOL,
        name,
        name=name,
        cluster="gke",
        location="us-central1-a",
        nodeCount=count,
        nodeConfig=config,
        **more,
    )


def test_without_a_scenario_nothing_is_refused(project: Driver) -> None:
    project.create(CLUSTER, "gke", **BASE)
    pool(project, "gpus", "a3-megagpu-8g", 40)


def test_an_api_that_is_not_enabled(project: Driver) -> None:
    given(project, apis=["storage.googleapis.com"])
    project.create("storage/bucket:Bucket", "b", name="b-1", location="US")
    with pytest.raises(RefusalError) as refused:
        project.create(NETWORK, "net", name="net")
    number = project_number("research")
    assert refused.value.code == "accessNotConfigured"
    assert f"Compute Engine API has not been used in project {number} before or it is disabled" in str(
        refused.value
    )
    project.create(SERVICE, "compute", service="compute.googleapis.com")
    project.create(NETWORK, "net", name="net")
    project.config["project"] = "elsewhere"
    with pytest.raises(RefusalError, match="accessNotConfigured"):
        project.create(NETWORK, "other", name="net")


def test_an_api_that_is_enabled_and_not_yet_usable(project: Driver) -> None:
    compute = "compute.googleapis.com"
    given(project, apis=[compute], unusable_apis=[compute])
    with pytest.raises(RefusalError, match="If you enabled this API recently, wait a few minutes"):
        project.create(NETWORK, "net", name="net")
    given(project, apis=[compute])
    project.create(NETWORK, "net", name="net")


def test_the_quota_of_networks(project: Driver) -> None:
    given(project, quotas={"networks": 1})
    project.create(NETWORK, "one", name="one")
    with pytest.raises(RefusalError, match=r"Error 403: Quota 'NETWORKS' exceeded\. +Limit: 1\.0 globally"):
        project.create(NETWORK, "two", name="two")
    given(project, quotas={"networks": 0, "gpus_all_regions": 0})
    with pytest.raises(RefusalError, match="'NETWORKS' exceeded"):
        project.create(NETWORK, "three", name="three")


def test_the_quota_of_all_regions(project: Driver) -> None:
    given(project, quotas={"gpus_all_regions": 8})
    project.create(CLUSTER, "gke", **BASE)
    pool(project, "one", "a2-highgpu-1g", 1)
    with pytest.raises(RefusalError, match=r"Quota 'GPUS_ALL_REGIONS' exceeded\. Limit: 8\.0 globally"):
        pool(project, "eight", "a3-megagpu-8g", 1)
    pool(project, "seven", "a2-highgpu-1g", 7)


def test_the_quota_of_a_gpu_family_counts_what_is_on_demand(project: Driver) -> None:
    given(project, quotas={"h100_mega": 0})
    project.create(CLUSTER, "gke", **BASE)
    with pytest.raises(RefusalError, match="gpu_family 'NVIDIA_H100_MEGA' exceeded"):
        pool(project, "gpus", "a3-megagpu-8g", 1)
    pool(project, "spot", "a3-megagpu-8g", 1, node={"spot": True})
    reserved = {
        "reservationAffinity": {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": ["r"],
        }
    }
    pool(project, "reserved", "a3-megagpu-8g", 1, node=reserved)


def test_the_first_nodes_of_a_cluster_take_disks(project: Driver) -> None:
    given(project, quotas={"ssd_total_gb": 250})
    regional = {**BASE, "location": "us-central1", "removeDefaultNodePool": True}
    zones: dict[str, Any] = {"nodeLocations": ["us-central1-a", "us-central1-b", "us-central1-c"]}
    with pytest.raises(RefusalError) as refused:
        project.create(CLUSTER, "gke", **regional, **zones)
    assert (
        "Insufficient regional quota to satisfy request: resource \"SSD_TOTAL_GB\": request requires '300.0' "
        "and is short '50.0'. project has a quota of '250.0' with '250.0' available."
    ) in str(refused.value)
    project.create(CLUSTER, "gke", **regional, **zones, nodeConfig={"diskType": "pd-standard"})


def test_a_stockout_leaves_a_pool_without_nodes(project: Driver) -> None:
    row = {"instance_type": "a3-megagpu-8g", "zone": "us-central1-a", "market": "on_demand", "instances": 1}
    given(project, capacity=[row])
    project.create(CLUSTER, "gke", **BASE)
    with pytest.raises(InitFailedError) as failed:
        pool(project, "gpus", "a3-megagpu-8g", 2, nodeLocations=["us-central1-a"])
    (said,) = failed.value.reasons
    assert "[GCE_STOCKOUT]" in said and "Expected 2, running 1, transitioning 1" in said
    assert project.state.find(type=f"gcp:{POOL}")[0].name == "gpus"
    pool(project, "spot", "a3-megagpu-8g", 2, nodeLocations=["us-central1-a"], node={"spot": True})


@pytest.mark.parametrize(
    ("constraint", "token", "inputs", "words"),
    [
        ("compute.requireShieldedVm", CLUSTER, BASE, "Secure Boot is not enabled"),
        ("compute.vmCanIpForward", CLUSTER, BASE, "forward packets"),
        ("compute.vmExternalIpAccess", CLUSTER, BASE, "external IP addresses"),
        (
            "sql.restrictPublicIp",
            "sql/databaseInstance:DatabaseInstance",
            {
                "databaseVersion": "POSTGRES_16",
                "settings": {"tier": "db-custom-2-7680", "edition": "ENTERPRISE"},
            },
            "Public IP",
        ),
        ("ainotebooks.restrictPublicIp", NOTEBOOK, NOTEBOOKS, "Public IP"),
        ("ainotebooks.disableTerminal", NOTEBOOK, NOTEBOOKS, "terminal is not allowed"),
        ("ainotebooks.disableRootAccess", NOTEBOOK, NOTEBOOKS, "Root access"),
        ("ainotebooks.disableFileDownloads", NOTEBOOK, NOTEBOOKS, "Downloading files"),
        ("ainotebooks.requireAutoUpgradeSchedule", NOTEBOOK, NOTEBOOKS, "upgrade schedule"),
        ("compute.requireShieldedVm", NOTEBOOK, NOTEBOOKS, "Secure Boot is not enabled"),
        (
            "run.allowedIngress",
            "cloudrunv2/service:Service",
            {"location": "us-central1", "template": {"containers": [{"image": "i"}]}},
            "INGRESS_TRAFFIC_ALL is not allowed",
        ),
        (
            "iam.disableServiceAccountCreation",
            "serviceaccount/account:Account",
            {"accountId": "trainer"},
            "creation is not allowed",
        ),
    ],
)
def test_policies_of_the_organisation(
    project: Driver, constraint: str, token: str, inputs: dict[str, Any], words: str
) -> None:
    given(project, org_policies=[constraint])
    with pytest.raises(
        RefusalError, match=f"constraints/{constraint} violated for project research.*{words}"
    ):
        project.create(token, "x", **inputs)
    given(project)
    project.create(token, "x", **inputs)


def test_shielded_private_nodes_satisfy_the_policies(project: Driver) -> None:
    given(project, org_policies=["compute.requireShieldedVm", "compute.vmExternalIpAccess"])
    secure = {"shieldedInstanceConfig": {"enableSecureBoot": True}}
    private: dict[str, Any] = {
        "privateClusterConfig": {"enablePrivateNodes": True, "masterIpv4CidrBlock": "172.16.0.0/28"}
    }
    project.create(CLUSTER, "gke", **BASE, **private, nodeConfig=secure)
    pool(project, "p", "e2-standard-4", 1, node=secure)


NUMBER = project_number("research")
MEMBER: dict[str, Any] = {"project": "research", "role": "roles/viewer"}


@pytest.mark.parametrize(
    ("constraint", "token", "inputs", "words"),
    [
        (
            "iam.allowedPolicyMemberDomains",
            "projects/iAMMember:IAMMember",
            {**MEMBER, "member": "user:eve@gmail.com"},
            r"Error 400: One or more users named in the policy do not belong to a permitted customer.*User "
            r"eve@gmail.com is not in permitted organization.*constraints/iam.allowedPolicyMemberDomains",
        ),
        (
            "iam.managed.allowedPolicyMembers",
            "projects/iAMMember:IAMMember",
            {**MEMBER, "member": "serviceAccount:ci@elsewhere.iam.gserviceaccount.com"},
            r"Error 400: Operation denied by org policy on resource 'projects/research': "
            r'\["constraints/iam.managed.allowedPolicyMembers": "',
        ),
        (
            "storage.uniformBucketLevelAccess",
            "storage/bucket:Bucket",
            {"name": "b-1", "location": "US"},
            "Error 412: Request violates constraint 'constraints/storage.uniformBucketLevelAccess'",
        ),
        (
            "iam.managed.preventPrivilegedBasicRolesForDefaultServiceAccounts",
            "projects/iAMMember:IAMMember",
            {
                "project": "research",
                "role": "roles/editor",
                "member": f"serviceAccount:{NUMBER}-compute@developer.gserviceaccount.com",
            },
            "preventPrivilegedBasicRoles",
        ),
    ],
)
def test_the_baseline_of_a_new_organization(
    project: Driver, constraint: str, token: str, inputs: dict[str, Any], words: str
) -> None:
    organization = {"domains": ["example.com"]}
    given(project, org_policies=[constraint], organization=organization)
    with pytest.raises(RefusalError, match=words):
        project.create(token, "x", **inputs)
    given(project, organization=organization)
    project.create(token, "x", **inputs)


@pytest.mark.parametrize(
    "member",
    [
        "user:ada@example.com",
        "group:ml@Example.com",
        "serviceAccount:ci@builds.iam.gserviceaccount.com",
        f"serviceAccount:{NUMBER}@cloudservices.gserviceaccount.com",
        f"principal://iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/p/subject/s",
        "projectOwner:research",
    ],
)
def test_members_of_the_organization_may_have_roles(project: Driver, member: str) -> None:
    organization = {"domains": ["example.com"], "projects": ["builds"]}
    both = ["iam.allowedPolicyMemberDomains", "iam.managed.allowedPolicyMembers"]
    given(project, org_policies=both, organization=organization)
    project.create("projects/iAMMember:IAMMember", "x", **MEMBER, member=member)


def test_a_budget_is_in_the_currency_of_the_account(project: Driver) -> None:
    given(project, billing_currency="EUR")
    budget: dict[str, Any] = {"billingAccount": "012345-6789AB-CDEF01", "thresholdRules": []}
    with pytest.raises(RefusalError, match="Error 400: Request contains an invalid argument"):
        project.create(
            "billing/budget:Budget", "x", **budget, amount={"specifiedAmount": {"currencyCode": "USD"}}
        )
    for amount in ({"currencyCode": "EUR", "units": "5"}, {"units": "5"}):
        project.create("billing/budget:Budget", "x", **budget, amount={"specifiedAmount": amount})


def test_a_sixth_operation_on_a_cluster_waits(project: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    project.create(CLUSTER, "gke", **BASE)
    inside, at_once, most = project.cloud.inside, threading.Semaphore(0), [0, 0]  # type: ignore[attr-defined]
    create = inside.create

    def slow(*args: Any, **more: Any) -> Any:
        most[0] += 1
        most[1] = max(most)
        at_once.acquire(timeout=5)
        most[0] -= 1
        return create(*args, **more)

    monkeypatch.setattr(inside, "create", slow)
    threads = [
        threading.Thread(target=pool, args=(project, f"p{index}", "e2-standard-4", 1)) for index in range(7)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 5
    while sum("Too many operations" in text for text in project.said) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    at_once.release(7)
    for thread in threads:
        thread.join()
    assert most[1] == 5 and limits._busy["gke"] == 0
    assert len(project.state.find(type=f"gcp:{POOL}")) == 7
    said = [text for text in project.said if "Too many operations" in text]
    assert len(said) == 2 and 'cluster "gke" hits the concurrent operations quota 5' in said[0]


def test_the_scenario_of_a_new_project_is_one(project: Driver) -> None:
    scenario: Faults = parse([], SCENARIO)
    assert scenario.apis and "container.googleapis.com" not in scenario.apis
    given(project, **scenario.model_dump(mode="json", exclude={"faults", "smoke"}))
    with pytest.raises(RefusalError, match="Kubernetes Engine API has not been used"):
        project.create(CLUSTER, "gke", **BASE)
