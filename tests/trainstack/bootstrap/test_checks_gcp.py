"""Preflight checks of the setup of a project, against the answers of Google's APIs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from infra.stackspec import load_file
from tests.trainstack.preflight.gcp.asking import ABSENT, DENIED, ID, NUMBER, STACK, Google, Said, project
from trainstack.bootstrap.gcp.checks import BUCKET, CONTACT, TRUST, checks_of
from trainstack.bootstrap.gcp.project import project as made_of
from trainstack.bootstrap.setup import ClientSetup
from trainstack.bootstrap.stacks import BootstrapPlace
from trainstack.bootstrap.trust import GITHUB, GITLAB, Pipeline
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import answered

GET, POLICY = "storage.buckets.get", "iam.projects.serviceAccounts.getIamPolicy"
PROVIDER = "iam.projects.locations.workloadIdentityPools.providers.get"
CONTACTS = "essentialcontacts.projects.contacts.list"
NAME = f"trainstack-acme-{ID}"
BUCKET_MADE: dict[str, Any] = {
    "name": NAME,
    "projectNumber": NUMBER,
    "encryption": {"defaultKmsKeyName": "k"},
    "versioning": {"enabled": True},
    "iamConfiguration": {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": {"enabled": True}},
}
FEDERATED = "roles/iam.workloadIdentityUser"
PIPELINES = [
    Pipeline(GITHUB, "acme/stacks"),
    Pipeline(GITLAB, "acme/ml/stacks"),
    Pipeline(GITHUB, "acme@123/stacks@456"),
]
POOL = f"iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/trainstack-acme"


def asked(
    check: str,
    said: Mapping[str, Said],
    pipeline: Pipeline | None = None,
    backend: str = "",
    *,
    form_known: bool = True,
    rules: str = "branch_policy\nrequired_reviewers",
) -> list[Answer]:
    made = checks_of(ClientSetup("acme", pipeline, backend, form_known, asked=lambda _: rules))[check]
    return list(answered(check, made, project(Google(said))))


def one(check: str, said: Mapping[str, Said], pipeline: Pipeline | None = None) -> Answer:
    (found,) = asked(check, said, pipeline)
    return found


def bound(role: str, *members: str) -> dict[str, Any]:
    return {"bindings": [{"role": role, "members": [*members]}]}


def provider(pipeline: Pipeline, **changes: Any) -> dict[str, Any]:
    """The provider that bootstrap makes for two stacks of the client."""
    spec = project(Google()).spec
    other = spec.model_copy(update={"name": "prod-gcp"})
    made = made_of("acme", BootstrapPlace("gcp", ID, spec.region, (spec, other)), pipeline)
    return {
        "attributeCondition": made.condition(pipeline), "attributeMapping": made.attributes(pipeline),
        "oidc": {"issuerUri": pipeline.issuer}, "state": "ACTIVE", **changes,
    }  # fmt: skip


def subject(pipeline: Pipeline) -> str:
    suffix = "" if pipeline.by_environment else f":environment:{STACK['name']}"
    return f"principal://{POOL}/subject/{pipeline.subject(STACK['name'])}{suffix}"


def test_the_bucket_that_bootstrap_makes_is_ready() -> None:
    assert one(BUCKET, {GET: BUCKET_MADE}).state is State.READY
    assert one(BUCKET, {GET: ABSENT}).state is State.SHORT
    assert one(BUCKET, {GET: DENIED}).state is State.UNKNOWN
    assert one(BUCKET, {GET: {**BUCKET_MADE, "projectNumber": "666"}}).state is State.SHORT
    (elsewhere,) = asked(BUCKET, {}, backend="file:///state")
    assert elsewhere.state is State.NOTE


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"encryption": {}}, "--default-encryption-key"),
        ({"versioning": {"enabled": False}}, "--versioning"),
        (
            {"iamConfiguration": {**BUCKET_MADE["iamConfiguration"], "publicAccessPrevention": "inherited"}},
            "--public-access-prevention",
        ),
        ({"iamConfiguration": {"publicAccessPrevention": "enforced"}}, "--uniform-bucket-level-access"),
        ({"retentionPolicy": {"retentionPeriod": "86400"}}, "--clear-retention-period"),
        ({"defaultEventBasedHold": True}, "--no-default-event-based-hold"),
    ],
)
def test_a_bucket_without_a_part_names_the_command(change: dict[str, Any], option: str) -> None:
    found = one(BUCKET, {GET: {**BUCKET_MADE, **change}})
    assert found.state is State.SHORT
    assert found.fix.startswith(f"gcloud storage buckets update gs://{NAME} {option}")


@pytest.mark.parametrize("pipeline", PIPELINES, ids=["github", "gitlab", "github-ids"])
def test_the_trust_is_compared_with_the_subject_of_the_pipeline(pipeline: Pipeline) -> None:
    right = {POLICY: bound(FEDERATED, subject(pipeline)), PROVIDER: provider(pipeline)}
    assert one(TRUST, right, pipeline).state is State.READY
    (unapproved,) = asked(TRUST, right, pipeline, rules="")
    assert unapproved.state is (State.NOTE if pipeline.by_environment else State.READY)
    wrong = {**right, POLICY: bound(FEDERATED, subject(pipeline).replace("acme", "evil"))}
    answers = asked(TRUST, wrong, pipeline)
    assert [answer.state for answer in answers] == [State.SHORT, State.SHORT]
    assert "remove-iam-policy-binding" in answers[0].fix and "add-iam-policy-binding" in answers[1].fix
    changes: list[dict[str, Any]] = [
        {"attributeCondition": ""}, {"attributeCondition": "assertion.repository == 'acme/other' && true"},
        {"oidc": {"issuerUri": "https://evil.example"}}, {"disabled": True}, {"attributeMapping": {}},
    ]  # fmt: skip
    for change in changes:
        found = one(TRUST, {**right, PROVIDER: provider(pipeline, **change)}, pipeline)
        assert found.state is State.SHORT, change


def test_the_form_of_a_subject_of_github_is_ready_only_where_it_is_known() -> None:
    named, _, ids = PIPELINES
    for trusted, other in ((named, ids), (ids, named)):
        made = {POLICY: bound(FEDERATED, subject(trusted)), PROVIDER: provider(trusted)}
        assert {answer.state for answer in asked(TRUST, made, other)} == {State.SHORT}
        (found,) = asked(TRUST, made, named, form_known=False)
        assert found.state is State.NOTE and "gh api repos/acme/stacks/" in found.fix


def test_members_of_an_agency_are_exact() -> None:
    role, group = "roles/iam.serviceAccountTokenCreator", "group:deployment@agency.com"
    assert one(TRUST, {POLICY: bound(role, group)}).state is State.READY
    assert one(TRUST, {POLICY: bound(role, group)}, PIPELINES[0]).state is State.NOTE
    assert one(TRUST, {POLICY: bound(role, group, "domain:agency.com")}).state is State.SHORT
    assert one(TRUST, {POLICY: {}}).state is State.SHORT
    assert one(TRUST, {POLICY: ABSENT}).state is State.SHORT


def test_addresses_of_the_budget_are_billing_contacts() -> None:
    def contacts(*categories: str) -> dict[str, Any]:
        mail = STACK["budget"]["alert_emails"][0].upper()
        return {"contacts": [{"email": mail, "notificationCategorySubscriptions": [*categories]}]}

    assert one(CONTACT, {CONTACTS: contacts("BILLING")}).state is State.READY
    assert one(CONTACT, {CONTACTS: contacts("ALL")}).state is State.READY
    for said in (contacts("SECURITY"), {}):
        found = one(CONTACT, {CONTACTS: said})
        assert found.state is State.SHORT and found.fix.startswith("gcloud essential-contacts create")


def of_guest(check: str, said: Mapping[str, Said], impersonate: str | None) -> list[Answer]:
    """The answers about a cluster whose large stack is in another project."""
    manager = load_file("large-gcp").spec
    made = replace(project(Google(said), on__impersonate=impersonate), beside=(manager,))
    setup = ClientSetup("acme", PIPELINES[0], "gs://of-the-manager", asked=lambda _: "")
    return list(answered(check, checks_of(setup)[check], made))


def test_a_cluster_in_its_own_project_has_the_state_and_the_deployer_of_its_large_stack() -> None:
    (found,) = of_guest(BUCKET, {GET: DENIED}, None)
    assert found.state is State.READY and "large-gcp" in found.text
    email = f"deployer-{STACK['name']}@{ID}.iam.gserviceaccount.com"
    user = "serviceAccount:deployer-large-gcp@example-ml-dev.iam.gserviceaccount.com"
    tokens = "roles/iam.serviceAccountTokenCreator"
    for policy, given, states in (
        (bound(tokens, user), email, [State.READY]),
        (bound(tokens, user), None, [State.NOTE]),
        (bound(tokens, user, "group:deploy@agency.com"), email, [State.SHORT]),
        (bound(FEDERATED, user), email, [State.SHORT, State.SHORT]),
        ({}, email, [State.SHORT]),
    ):
        assert [one.state for one in of_guest(TRUST, {POLICY: policy}, given)] == states, policy
