"""A stack without a cluster on Google Cloud, composed: what an expert of Vertex AI looks for."""

import datetime
import functools
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from pulumi.runtime import rpc

from infra import cost
from infra.catalog.gcp import deploying
from infra.outputs.jobs import JobOutputs
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import SmallLayout
from rehearsal.gcp.rules import BOOK
from stacks.clouds.gcp.jobs import GcpJobs
from tests.components.gcp.computed import COMPUTED, NUMBER, PROJECT
from tests.components.graph import Graph, deploy_graph
from tests.stacks.composition.composed import composed, stack_spec

PAIR = ("small", "gcp")
VALIDATION = f"dev-smoke-validation@{PROJECT}.iam.gserviceaccount.com"
EVE = f"serviceAccount:dev-job-eve@{PROJECT}.iam.gserviceaccount.com"
DAY = datetime.date(2026, 11, 26)


@functools.cache
def made() -> Graph:
    return composed(PAIR)


@functools.cache
def kept() -> Graph:
    return composed(PAIR, lambda spec: spec["data"].update({"protect": True, "on_destroy": "keep"}))


def notebooks() -> dict[str, Any]:
    return {name.rpartition("-")[2]: one for name, one in made().all("workbench/instance:Instance").items()}


def of(member: str, kind: str) -> list[Any]:
    return [one for one in made().all(kind).values() if one["member"] == member]


def test_each_person_has_a_notebook_that_she_alone_opens_and_that_runs_as_her_account() -> None:
    assert {name: one["instanceOwners"] for name, one in notebooks().items()} == {
        who: [f"{who}@example.com"] for who in ("ada", "ben", "eve")
    }
    accounts = {one["gceSetup"]["serviceAccounts"][0]["email"] for one in notebooks().values()}
    assert accounts == {f"dev-job-{who}@{PROJECT}.iam.gserviceaccount.com" for who in ("ada", "ben", "eve")}
    rights = made().all("InstanceIamMember")
    assert {one["member"] for one in rights.values()} == {
        f"user:{who}@example.com" for who in ("ada", "ben", "eve")
    }


@pytest.mark.parametrize("who", ["ada", "ben", "eve"])
def test_a_notebook_is_closed_encrypted_and_goes_off_when_it_is_idle(who: str) -> None:
    setup = notebooks()[who]["gceSetup"]
    assert setup["disablePublicIp"] is True and setup["networkInterfaces"][0]["subnet"]
    assert setup["shieldedInstanceConfig"]["enableSecureBoot"] is True
    assert setup["metadata"]["idle-timeout-seconds"] == "3600"
    # Without them the instance never finds itself idle.
    assert setup["metadata"]["enable-guest-attributes"] == "true"
    for disk in (setup["bootDisk"], setup["dataDisks"]):
        assert disk["diskEncryption"] == "CMEK" and disk["kmsKey"]


def test_a_notebook_satisfies_what_landing_zones_ask_of_it_but_for_the_terminal() -> None:
    metadata = notebooks()["eve"]["gceSetup"]["metadata"]
    for key in ("notebook-disable-root", "notebook-disable-downloads"):
        assert metadata[key] == "true"
    assert metadata["notebook-upgrade-schedule"]
    assert metadata["notebook-disable-terminal"] == "false"


def test_people_switch_notebooks_on_and_off_without_the_next_up_undoing_it() -> None:
    ignored = [made().ignored[f"Instance:dev-notebook-{who}"] for who in ("ada", "ben", "eve")]
    assert ignored == [["desiredState"]] * 3


def test_what_costs_money_carries_the_labels_by_which_budgets_know_it() -> None:
    assert notebooks()["eve"]["labels"] == {"trainstack-person": "eve", "trainstack-team": "language"}


@pytest.mark.parametrize("member", [EVE, "user:eve@example.com"])
def test_a_person_reaches_the_folders_of_her_team_and_no_bucket(member: str) -> None:
    folders = {(one["managedFolder"], one["role"]) for one in of(member, "ManagedFolderIamMember")}
    assert folders == {
        ("shared/", "roles/storage.objectViewer"),
        ("teams/language/", "roles/storage.objectViewer"),
        ("teams/language/", "roles/storage.objectUser"),
        ("runs/", "roles/storage.objectUser"),
        ("code/eve/", "roles/storage.objectViewer"),
        ("code/eve/", "roles/storage.objectCreator"),
    }
    assert of(member, "BucketIAMMember") == []


@pytest.mark.parametrize("member", [EVE, "user:eve@example.com"])
def test_a_person_runs_jobs_as_her_own_account_and_as_no_other(member: str) -> None:
    (project,) = of(member, "projects/iAMMember:IAMMember")
    assert project["role"].endswith("/roles/dev_jobs")
    acts = of(member, "serviceaccount/iAMMember:IAMMember")
    accounts = {one["serviceAccountId"] for one in acts}
    assert len(accounts) == 1 and "eve" in accounts.pop()
    roles = {one["role"].rpartition("/")[2] for one in acts}
    assert "iam.serviceAccountUser" in roles and len(roles) == 2
    assert not any("tokenCreator" in role.lower() for role in roles)


def test_no_role_of_the_project_holds_more_than_it_takes_to_run_jobs() -> None:
    roles = {one["roleId"]: set(one["permissions"]) for one in made().all("IAMCustomRole").values()}
    assert "aiplatform.customJobs.create" in roles["dev_jobs"]
    everything = set().union(*roles.values())
    assert not {one for one in everything if one.endswith((".delete", ".setIamPolicy", ".actAs"))}
    granted = {one["role"] for one in made().all("projects/iAMMember:IAMMember").values()}
    # Custom roles, the login to one database, and what building and triggering the function take.
    assert {role for role in granted if role.startswith("roles/")} == {
        "roles/cloudsql.instanceUser",
        "roles/logging.logWriter",
        "roles/artifactregistry.writer",
        "roles/storage.objectViewer",
        "roles/eventarc.serviceAgent",
    }


def test_mlflow_is_behind_the_proxy_costs_nothing_idle_and_knows_no_password() -> None:
    service = made().find("cloudrunv2/service:Service")
    assert service["iapEnabled"] is True and service["invokerIamDisabled"] is False
    template = service["template"]
    assert template["scaling"] == {"minInstanceCount": 0, "maxInstanceCount": 1}
    assert template["vpcAccess"]["egress"] == "PRIVATE_RANGES_ONLY"
    (container,) = template["containers"]
    assert "@sha256:" in container["image"]
    # The login is renewed between requests, too.
    assert container["resources"]["cpuIdle"] is False
    environment = {one["name"]: one["value"] for one in container["envs"]}
    assert environment["DATABASE_URI"].startswith("postgresql+psycopg2://dev-tracking%40")
    assert "password" not in json.dumps(environment).lower()
    assert environment["DATABASE_IDENTITY"] == f"dev-tracking@{PROJECT}.iam.gserviceaccount.com"


def test_all_that_bills_is_deleted_before_the_subnetwork_whose_addresses_cloud_run_holds() -> None:
    graph = made()
    (access,) = graph.find("cloudrunv2/service:Service")["template"]["vpcAccess"]["networkInterfaces"]
    held = f"Subnetwork:{access['subnetwork'].removesuffix('-id')}"
    assert held in graph.requests
    stays = {held, *graph.waits_for(held)}
    custom = {name for name, asked in graph.requests.items() if asked.custom and ":" in asked.type}
    left = {name for name in custom - stays if held not in graph.created_after(name)}
    # APIs stay enabled.
    assert {name for name in left if not name.startswith(("Service:dev-apis-", "gcp:"))} == set()
    assert {name for name in stays if name.startswith(("Subnetwork:", "Network:", "Router"))} == {
        held,
        "Network:dev-network-vpc",
    }


def test_all_that_bills_is_deleted_before_the_subnetwork_that_cloud_run_has_left() -> None:
    graph, held = made(), "Subnetwork:dev-network-nodes"
    stays = {held, *graph.waits_for(held)}
    custom = {name for name, asked in graph.requests.items() if asked.custom and ":" in asked.type}
    left = {name for name in custom - stays if held not in graph.created_after(name)}
    free = ("Firewall:", "Router:", "GlobalAddress:", "Connection:", "Service:dev-apis-", "gcp:")
    assert {name for name in left if not name.startswith(free)} == set()


def test_only_the_proxy_calls_mlflow_and_only_people_and_their_jobs_pass_it() -> None:
    calls = {one["member"] for one in made().all("ServiceIamMember").values() if "tracking" in one["name"]}
    assert calls == {"serviceAccount:agent-of-iap@system.test"}
    visitors = {one["member"] for one in made().all("WebCloudRunServiceIamMember").values()}
    assert visitors == {f"user:{who}@example.com" for who in ("ada", "ben", "eve")} | {
        f"serviceAccount:dev-job-{who}@{PROJECT}.iam.gserviceaccount.com" for who in ("ada", "ben", "eve")
    } | {f"serviceAccount:{VALIDATION}"}


def test_the_database_is_private_small_and_encrypted() -> None:
    database = made().find("DatabaseInstance")
    assert database["settings"]["tier"] == "db-f1-micro"
    assert database["settings"]["ipConfiguration"]["ipv4Enabled"] is False
    assert database["encryptionKeyName"]
    assert made().all("secretmanager/secret:Secret") == {}


def test_each_budget_counts_its_label_in_this_project_and_wakes_the_function() -> None:
    budgets = made().all("Budget")
    assert {one["displayName"]: one["budgetFilter"]["labels"] for one in budgets.values()} == {
        "dev-monthly": {"trainstack-stack": "dev"},
        "dev-team-vision-monthly": {"trainstack-team": "vision"},
        "dev-person-eve-monthly": {"trainstack-person": "eve"},
    }
    topics = {one["allUpdatesRule"]["pubsubTopic"] for one in budgets.values()}
    function = made().find("cloudfunctionsv2/function:Function")
    assert topics == {function["eventTrigger"]["pubsubTopic"]}
    settings = json.loads(function["serviceConfig"]["environmentVariables"]["TRAINSTACK_BUDGETS"])
    assert [(one["name"], one["scope"], one["over_budget"]) for one in settings["budgets"]] == [
        ("dev-monthly", "stack", "warn"),
        ("dev-team-vision-monthly", "team", "stop"),
        ("dev-person-eve-monthly", "person", "stop"),
    ]


def test_the_function_is_reached_by_its_topic_alone_and_may_only_look_and_stop() -> None:
    function = made().find("cloudfunctionsv2/function:Function")
    assert function["serviceConfig"]["ingressSettings"] == "ALLOW_INTERNAL_ONLY"
    assert function["serviceConfig"]["maxInstanceCount"] == 1
    account = f"serviceAccount:{function['serviceConfig']['serviceAccountEmail']}"
    (right,) = of(account, "projects/iAMMember:IAMMember")
    (role,) = [one for one in made().all("IAMCustomRole").values() if right["role"].endswith(one["roleId"])]
    assert {one.rpartition(".")[2] for one in role["permissions"]} == {"list", "cancel", "stop", "undeploy"}
    # Records can be added, and neither read nor replaced.
    (audit,) = of(account, "ManagedFolderIamMember")
    assert (audit["managedFolder"], audit["role"]) == ("audit/", "roles/storage.objectCreator")


def test_who_builds_the_function_reads_copies_of_sources_and_no_bucket_of_the_stack() -> None:
    builder = made().find("cloudfunctionsv2/function:Function")["buildConfig"]["serviceAccount"]
    (account,) = [one for one in made().all("Account").values() if one["accountId"] in builder]
    member = f"serviceAccount:{account['accountId']}@{PROJECT}.iam.gserviceaccount.com"
    assert not of(member, "ManagedFolderIamMember") and not of(member, "BucketIAMMember")
    reads = [one for one in of(member, "projects/iAMMember:IAMMember") if "storage" in one["role"]]
    (copies,) = [one["condition"]["expression"] for one in reads]
    assert copies == f'resource.name.startsWith("projects/_/buckets/gcf-v2-sources-{NUMBER}-us-central1")'


def test_a_protected_stack_keeps_notebooks_database_server_and_data() -> None:
    graph = kept()
    assert all(one["enableDeletionProtection"] for one in graph.all("workbench/instance:Instance").values())
    assert graph.find("cloudrunv2/service:Service")["deletionProtection"] is True
    assert graph.find("DatabaseInstance")["deletionProtection"] is True
    assert not any(one.get("forceDestroy") for one in graph.all("storage/bucket:Bucket").values())


def test_what_is_exported_is_all_that_a_job_needs() -> None:
    exported = JobOutputs.model_validate(made().outputs)
    assert (exported.service, exported.subnets, exported.security_groups) == ("vertex", (), ())
    assert exported.code_uri.startswith("gs://") and exported.code_uri.endswith("/code")
    assert {one.name: one.role for one in exported.people} == {
        who: f"dev-job-{who}@{PROJECT}.iam.gserviceaccount.com" for who in ("ada", "ben", "eve")
    }
    prices = {one.name: one.usd_per_hour for one in exported.machines}
    assert prices["l4"] == pytest.approx(0.982, abs=0.001)


def test_the_service_would_refuse_nothing_that_a_rule_knows() -> None:
    broken = [
        (asked.name, rule.id, violation)
        for asked in made().cloud.asked
        if asked.type.startswith("gcp:")
        for rule, violation in BOOK.broken_alone(asked.type, dict(asked.properties))
        # Ids are names here; tests.stacks.google_judge has such as these rules judge.
        if not rule.id.startswith(("GCP-PROVIDER-", "GCP-KMS-014"))
    ]
    assert broken == []


def test_an_idle_stack_costs_less_than_sixty_dollars_and_says_for_what() -> None:
    estimate = cost.estimate(stack_spec(PAIR), DAY)
    standing = {item.name: item.minimum for item in estimate.items if item.minimum}
    assert standing == {
        "Cloud SQL db-f1-micro (MLflow)": pytest.approx(7.67, abs=0.01),
        "Cloud SQL disk (10 GiB)": pytest.approx(1.70, abs=0.01),
        "disks of notebooks (3 of 170 GiB)": pytest.approx(20.40, abs=0.01),
        "KMS keys (1)": pytest.approx(0.06, abs=0.01),
    }
    assert estimate.minimum < 60
    left_out = [use.name for use in estimate.not_priced]
    assert {"the address of Cloud NAT", "MLflow on Cloud Run", "calls and builds of functions"} <= {*left_out}


def test_the_estimate_counts_what_the_graph_has() -> None:
    names = {item.name for item in cost.estimate(stack_spec(PAIR), DAY).items}
    keys = made().cloud.of_type("gcp:kms/cryptoKey:CryptoKey")
    assert f"KMS keys ({len(keys)})" in names
    assert f"disks of notebooks ({len(notebooks())} of 170 GiB)" in names


def test_the_deployers_permissions_are_known_for_every_type() -> None:
    types = {asked.type for asked in made().cloud.asked if asked.type.startswith("gcp:")}
    assert types <= set(deploying.permissions())


@functools.cache
def access(purchase: str = "spot") -> tuple[Graph, list[Any]]:
    """What the gate would be given; the gate itself is no part of the cloud."""
    given: list[Any] = []

    def program() -> dict[str, Any]:
        first = {"purchase": {"kind": purchase}}
        spec = stack_spec(PAIR, lambda found: found["layout"]["machines"][0].update(first))
        assert isinstance(spec.layout, SmallLayout) and isinstance(spec.on, GcpSpec)
        cloud = GcpJobs(spec, spec.layout, spec.on)
        place = cloud.place()
        cloud.notebooks(place)
        tracking = cloud.tracking(place)
        found = cloud.validation(place, tracking, spec.layout.machines[0])
        given.append(found)
        return {"place": found.place, "results": found.results}

    return deploy_graph(program, COMPUTED), given


def test_the_validation_runs_as_an_account_that_sees_no_data_of_people() -> None:
    graph, (found,) = access()
    place = graph.outputs["place"]
    assert place["accelerator_type"] == "NVIDIA_L4" and place["output_uri"].endswith("/runs")
    member = f"serviceAccount:{place['service_account']}"
    folders = {
        one["managedFolder"]: one["role"].rpartition(".")[2]
        for one in graph.all("ManagedFolderIamMember").values()
        if one["member"] == member
    }
    assert folders == {"smoke/": "objectUser", "runs/": "objectUser", "code/": "objectViewer"}
    assert graph.outputs["results"].endswith("/smoke")
    assert (found.machine.machine, found.machine.offer["gpus"]) == ("g2-standard-8", 1)
    acts = [
        one for one in graph.all("serviceaccount/iAMMember:IAMMember").values() if one["member"] == member
    ]
    # It signs for the tracking server, and impersonates no account.
    assert [one["role"].rpartition("_")[2] for one in acts] == ["signs"]


def test_the_service_waits_for_flex_start_machines_of_the_gate_longer_than_the_deploy_does() -> None:
    graph, _ = access("flex_start")
    assert graph.outputs["place"]["flex_wait_s"] > stack_spec(PAIR).smoke.queue_timeout_s
    assert access()[0].outputs["place"]["flex_wait_s"] is None


def test_an_oauth_client_of_the_project_serves_the_login_and_its_secret_stays_one() -> None:
    client = {"client_id": "1-a.apps.googleusercontent.com", "client_secret": "projects/keys/secrets/login"}
    graph = composed(PAIR, lambda spec: spec["on"].update({"login": client}))
    settings = graph.find("iap/settings:Settings")
    name, service = settings["name"], graph.find("cloudrunv2/service:Service")
    assert name.startswith(f"projects/{NUMBER}/iap_web/cloud_run-us-central1/services/")
    assert service["iapEnabled"] is True
    request = MessageToDict(graph.requests["Settings:dev-tracking-login"].object)
    assert request["accessSettings"]["oauthSettings"] == {
        "clientId": client["client_id"],
        "clientSecret": {rpc._special_sig_key: rpc._special_secret_sig, "value": "value of login"},
    }
    assert "value of login" not in json.dumps(graph.outputs, default=str)
    assert not made().all("iap/settings:Settings")
