"""Checks of a project for a stack without a cluster."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from infra import stackspec
from infra.catalog.gcp.deploying import PUBLISHER
from infra.stackspec.document import read
from infra.stackspec.gcp.cloud import GcpSpec, OAuthClientSpec
from infra.stackspec.layouts import SmallLayout
from infra.stackspec.load import CONFIG
from tests.trainstack.preflight.gcp.asking import ABSENT, DENIED, Google, Said
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp import JOB_CHECKS, apis, identity, jobs, permissions, places, policies
from trainstack.preflight.gcp.project import Project, answered

INFOS = "cloudquotas.projects.locations.services.quotaInfos.list"
POLICY = "orgpolicy.projects.policies.getEffectivePolicy"
SPOT = "aiplatform.googleapis.com/custom_model_training_preemptible_nvidia_l4_gpus"
LISTED = "aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus"


def project(
    google: Google, purchase: Mapping[str, str] | None = None, schedule: str | None = None
) -> Project:
    """The shipped stack; `purchase` is how its first machine is bought."""
    content = json.loads(json.dumps(read(CONFIG / "Pulumi.small-gcp.yaml", "f")))["config"]
    values = {key.partition(":")[2]: value for key, value in content.items()}
    if purchase is not None:
        values["spec"]["layout"]["machines"][0]["purchase"] = dict(purchase)
    spec = stackspec.load("small-gcp", values, "f").spec
    spec = spec.model_copy(update={"smoke": spec.smoke.model_copy(update={"schedule": schedule})})
    assert isinstance(spec.layout, SmallLayout) and isinstance(spec.on, GcpSpec)
    return Project(spec, spec.layout, spec.on, google.session())


def info(metric: str, **by_region: str | None) -> dict[str, Any]:
    """A quota with its value by region; None: JSON leaves out a value that is 0."""
    rows = [
        {
            **({"dimensions": {"region": region.replace("_", "-")}} if region != "everywhere" else {}),
            "details": {} if value is None else {"value": value},
            "applicableLocations": [region.replace("_", "-")],
        }
        for region, value in by_region.items()
    ]
    name = metric.partition("/")[2]
    return {"quotaId": f"Id-{name}", "metric": metric, "dimensions": ["region"], "dimensionsInfos": rows}


def test_only_a_validation_that_is_repeated_needs_cloud_scheduler() -> None:
    google = Google({"cloudscheduler.projects.locations.list": {"locations": []}})
    assert [*answered("scheduler", places.scheduler, project(google))] == []
    (answer,) = answered("scheduler", places.scheduler, project(google, schedule="0 5 * * 1"))
    assert answer.state is State.SHORT
    assert answer.text.startswith("smoke.schedule ") and answer.text.endswith(" us-central1")


def room(*infos: Mapping[str, Any]) -> dict[str, Answer]:
    google = Google({INFOS: {"quotaInfos": [*infos]}})
    found = [*answered("job-quotas", jobs.room, project(google))]
    return {one.text.partition(":")[0]: one for one in found}


def test_each_machine_is_held_against_the_quota_of_how_it_is_bought() -> None:
    found = room(info(SPOT, us_central1="2"), info(LISTED, us_central1="8"))
    assert {one.state for one in found.values()} == {State.READY}
    assert "2, 2 wanted" in found[SPOT.partition("/")[2]].text
    assert "8, 8 wanted" in found[LISTED.partition("/")[2]].text


def test_a_quota_of_zero_is_reported_with_the_command_for_more() -> None:
    found = room(info(SPOT, us_central1=None), info(LISTED, us_central1="8"))
    short = found[SPOT.partition("/")[2]]
    assert short.state is State.SHORT and "0 allowed, 2" in short.text
    assert "--service=aiplatform.googleapis.com" in short.fix
    assert "--preferred-value=2 --dimensions=region=us-central1" in short.fix


def test_the_value_of_another_region_does_not_count() -> None:
    found = room(info(SPOT, us_east4="100", everywhere="1"), info(LISTED, us_central1="-1"))
    assert found[SPOT.partition("/")[2]].state is State.SHORT
    assert "any number" in found[LISTED.partition("/")[2]].text


def test_a_quota_that_the_project_does_not_list_is_unknown() -> None:
    (first, *_) = room().values()
    assert first.state is State.UNKNOWN and "--skip job-quotas" in first.fix


RESERVATION = "projects/example-ml-jobs/zones/us-central1-a/reservations/l4"
HELD: dict[str, Any] = {
    "status": "READY",
    "specificReservationRequired": True,
    "specificReservation": {"count": "2", "instanceProperties": {"machineType": "g2-standard-8"}},
    "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"},
}


def held(row: Any) -> Answer:
    google = Google({"compute.reservations.get": row})
    bought = {"kind": "reserved", "id": RESERVATION}
    (answer,) = answered("job-reservations", jobs.reserved, project(google, bought))
    asked = {"project": "example-ml-jobs", "zone": "us-central1-a", "reservation": "l4"}
    assert google.given("compute.reservations.get") == [asked]
    return answer


def test_a_reservation_that_jobs_can_use_is_ready() -> None:
    answer = held(HELD)
    assert answer.state is State.READY and "with 2 machines" in answer.text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "CREATING"}, "is creating"),
        ({"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}, "with Vertex AI"),
        ({"specificReservation": {**HELD["specificReservation"], "count": "1"}}, "holds 1 machines"),
        (
            {"specificReservation": {"count": "2", "instanceProperties": {"machineType": "g2-standard-4"}}},
            "g2-standard-4, not",
        ),
    ],
)
def test_a_reservation_that_no_job_can_use_is_short(changes: dict[str, Any], words: str) -> None:
    answer = held({**HELD, **changes})
    assert answer.state is State.SHORT and words in answer.text


def test_a_reservation_that_is_not_there_is_short() -> None:
    answer = held(ABSENT)
    assert answer.state is State.SHORT and "does not exist" in answer.text


def test_the_stack_needs_its_own_apis_and_none_of_a_cluster() -> None:
    wanted = {*apis.wanted(project(Google()))}
    assert {"aiplatform.googleapis.com", "run.googleapis.com", "iap.googleapis.com"} <= wanted
    assert not {"container.googleapis.com", "lustre.googleapis.com", "file.googleapis.com"} & wanted


def test_the_deployer_is_asked_for_rights_to_make_notebooks_and_no_cluster() -> None:
    wanted = {*permissions.permissions(project(Google()).spec)}
    assert {"notebooks.instances.create", "run.services.create", "iam.roles.create"} <= wanted
    assert not {one for one in wanted if one.startswith(("container.", "lustre.", "secretmanager."))}


def test_a_repetition_takes_cloud_scheduler_and_rights_to_its_jobs() -> None:
    once, again = project(Google()), project(Google(), schedule="0 5 * * 1")
    assert {*apis.wanted(again)} - {*apis.wanted(once)} == {"cloudscheduler.googleapis.com"}
    assert {*permissions.permissions(again.spec)} - {*permissions.permissions(once.spec)} == {
        f"cloudscheduler.jobs.{verb}" for verb in ("create", "get", "update", "delete")
    }


@pytest.mark.parametrize(
    ("constraint", "spec"),
    [
        ("ainotebooks.disableTerminal", {"rules": [{"enforce": True}]}),
        ("run.allowedIngress", {"rules": [{"values": {"allowedValues": ["internal"]}}]}),
        ("iam.disableServiceAccountCreation", {"rules": [{"enforce": True}]}),
    ],
)
def test_blocking_policies_are_reported(constraint: str, spec: dict[str, Any]) -> None:
    def policy(given: Mapping[str, Any]) -> Mapping[str, Any]:
        mine = str(given["name"]).endswith(constraint)
        return {"name": given["name"], "spec": spec} if mine else {"name": given["name"]}

    replies: dict[str, Said] = {POLICY: policy}
    (answer,) = answered("policies", policies.blocking, project(Google(replies)))
    assert answer.state is State.SHORT and answer.text.startswith(f"{constraint}: ")


def test_no_check_is_about_a_cluster() -> None:
    assert not {"kubernetes-version", "gke-auth-plugin", "way-in", "leftovers", "types"} & set(JOB_CHECKS)


@pytest.mark.parametrize(
    ("parent", "above", "emails", "state"),
    [
        ("organizations/1", "example.com", (), State.READY),
        ("folders/1", "example.com", (), State.READY),
        ("", None, (), State.SHORT),
        ("organizations/1", None, ("x@gmail.com",), State.SHORT),
        ("organizations/1", None, ("x@outlook.com",), State.SHORT),
        ("organizations/1", "example.com", ("x@another.example",), State.NOTE),
        # An agency deploys for a customer: all users are of one domain, which is not the organization's.
        ("organizations/1", "customer.example", (), State.NOTE),
        ("folders/1", None, (), State.NOTE),
    ],
)
def test_users_of_the_organization_log_in_to_mlflow(
    parent: str, above: str | None, emails: tuple[str, ...], state: State
) -> None:
    about = {"name": "projects/1", "projectId": "example-ml-jobs", "state": "ACTIVE"}
    organization = {"name": "organizations/1", "displayName": above}
    google = Google(
        {
            "cloudresourcemanager.projects.get": {**about, **({"parent": parent} if parent else {})},
            "cloudresourcemanager.folders.get": {"name": "folders/1", "parent": "organizations/1"},
            "cloudresourcemanager.organizations.get": organization if above else DENIED,
        }
    )
    found = project(google)
    assert isinstance(found.layout, SmallLayout)
    people = [*found.layout.people]
    for index, email in enumerate(emails):
        people[index] = people[index].model_copy(update={"email": email})
    layout = found.layout.model_copy(update={"people": tuple(people)})
    changed = Project(found.spec, layout, found.on, google.session())
    (answer,) = answered("tracking-login", identity.login, changed)
    assert (answer.check, answer.state) == ("tracking-login", state)


VERSION = "projects/746918459997/secrets/s/versions/2"


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ({"name": VERSION, "state": "ENABLED"}, State.READY),
        ({"name": VERSION, "state": "DISABLED"}, State.SHORT),
        ({"name": VERSION, "state": "DESTROYED"}, State.SHORT),
        (ABSENT, State.SHORT),
        (DENIED, State.UNKNOWN),
    ],
)
def test_users_of_any_domain_log_in_to_mlflow_by_a_client_of_the_project(version: Any, state: State) -> None:
    """`up` reads the newest version of its secret."""
    google = Google({"secretmanager.projects.secrets.versions.get": version})
    found = project(google)
    client = {"client_id": "1-a.apps.googleusercontent.com", "client_secret": "projects/ml/secrets/s"}
    on = found.on.model_copy(update={"login": OAuthClientSpec(**client)})
    changed = Project(found.spec, found.layout, on, google.session())
    (answer,) = answered("tracking-login", identity.login, changed)
    assert (answer.check, answer.state) == ("tracking-login", state)
    assert bool(answer.fix) == (state is not State.READY)


LEGACY, MANAGED = "iam.allowedPolicyMemberDomains", "iam.managed.allowedPolicyMembers"
CUSTOMER: dict[str, Any] = {"values": {"allowedValues": ["is:C01abcdef"]}}


def allowing(*subjects: str) -> dict[str, Any]:
    return {"enforce": True, "parameters": {"allowedMemberSubjects": [*subjects]}}


@pytest.mark.parametrize(
    ("bound", "constraint", "rule", "states"),
    [
        ([], MANAGED, allowing(), [State.SHORT, State.NOTE]),
        ([], MANAGED, allowing(PUBLISHER), [State.NOTE]),
        ([], LEGACY, CUSTOMER, [State.SHORT, State.NOTE]),
        # Constraints judge new bindings only: a stack that is deployed already is not held up.
        ([PUBLISHER], MANAGED, allowing(), [State.NOTE]),
        ([PUBLISHER], LEGACY, CUSTOMER, [State.NOTE]),
    ],
)
def test_the_publisher_of_budgets_with_a_function(
    bound: list[str], constraint: str, rule: dict[str, Any], states: list[State]
) -> None:
    def effective(given: Mapping[str, Any]) -> Any:
        found = str(given["name"]).endswith(f"/{constraint}")
        return {"name": given["name"], "spec": {"rules": [rule]}} if found else ABSENT

    of = project(Google())
    topics = [
        {"name": f"{of.path}/topics/{name}"} for name in ("other", f"{of.spec.name}-budgets-topic-1a2b3c4")
    ]
    google = Google(
        {
            POLICY: effective,
            "pubsub.projects.topics.list": {"topics": topics},
            "pubsub.projects.topics.getIamPolicy": {
                "bindings": [{"role": "roles/pubsub.publisher", "members": bound}]
            },
        }
    )
    found = [*answered("organization-policies", policies.blocking, project(google))]
    assert [one.state for one in found] == states
    assert states[0] is not State.SHORT or PUBLISHER in found[0].text
