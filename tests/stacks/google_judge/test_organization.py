"""Policies of an organization: preflight reports what the emulation refuses of a shipped stack."""

from collections.abc import Mapping
from typing import Any

import pytest

from infra import places
from infra.catalog.gcp.deploying import PUBLISHER
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from rehearsal.accounts import project_number
from rehearsal.core.faults import Faults, OrgPolicy, parse
from rehearsal.core.model import RefusalError
from rehearsal.gcp import organization_policies
from tests.components.gcp.computed import PROJECT
from tests.stacks.google_judge.shipped import STACKS, loaded, requested
from tests.trainstack.preflight.gcp.asking import ABSENT, Google, asked
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import policies
from trainstack.preflight.gcp.project import Project

LEGACY: tuple[OrgPolicy, ...] = (
    "compute.restrictProtocolForwardingCreationForTypes",
    "compute.setNewProjectDefaultToZonalDNSOnly",
    "essentialcontacts.allowedContactDomains",
    "iam.allowedPolicyMemberDomains",
    "iam.automaticIamGrantsForDefaultServiceAccounts",
    "iam.disableServiceAccountKeyCreation",
    "iam.disableServiceAccountKeyUpload",
    "storage.uniformBucketLevelAccess",
)
MANAGED = parse([], places.PACKAGES / "rehearsal/scenarios/new-organization.yaml").org_policies
HARDENED: tuple[OrgPolicy, ...] = (
    "compute.requireShieldedVm",
    "compute.vmExternalIpAccess",
    "sql.restrictPublicIp",
    "ainotebooks.restrictPublicIp",
)
GET, TOPICS = "orgpolicy.projects.policies.getEffectivePolicy", "pubsub.projects.topics.list"


def scenario(*constraints: OrgPolicy, **organization: Any) -> Faults:
    known = {"domains": ("example.com",), **organization}
    return Faults.model_validate({"org_policies": constraints, "organization": known})


def refused(stack: str, faults: Faults) -> set[str]:
    """Constraints of which the emulated services report a violation."""
    found: set[str] = set()
    cluster: Mapping[str, Any] = {}
    for token, _, inputs in requested(stack):
        cluster = inputs if token.endswith(":Cluster") else cluster
        known = _in(PROJECT, inputs)
        for one in faults.org_policies:
            alone = faults.model_copy(update={"org_policies": (one,)})
            try:
                organization_policies.refuse(alone, f"gcp:{token}", known, PROJECT, {**cluster})
            except RefusalError:
                found.add(one)
    return found


def _in(project: str, value: Any) -> Any:
    """The inputs with accounts and agents as the project has them; the recorder has stand-ins."""
    if isinstance(value, Mapping):
        return {name: _in(project, one) for name, one in value.items()}
    if isinstance(value, list):
        return [_in(project, one) for one in value]
    if not isinstance(value, str):
        return value
    number, agent = project_number(project), value.removeprefix("serviceAccount:agent-of-")
    if agent != value:
        agent = agent.removesuffix("@system.test")
        return f"serviceAccount:service-{number}@gcp-sa-{agent}.iam.gserviceaccount.com"
    if value.endswith("@gs-project-accounts.iam.gserviceaccount.com"):
        return f"serviceAccount:service-{number}@gs-project-accounts.iam.gserviceaccount.com"
    return value.replace("123456789012", number)


def reported(stack: str, faults: Faults) -> set[str]:
    """Constraints that preflight reports as an obstacle."""
    spec = loaded(stack)
    assert isinstance(spec.on, GcpSpec) and isinstance(spec.layout, ClusterLayout | SmallLayout)
    google = Google({GET: lambda given: _effective(given, faults), TOPICS: {}})
    answers = asked(policies.blocking, Project(spec, spec.layout, spec.on, google.session()))
    return {one.text.partition(":")[0] for one in answers if one.state is State.SHORT}


def _effective(given: Mapping[str, Any], faults: Faults) -> Any:
    constraint = str(given["name"]).rpartition("/")[2]
    if constraint not in faults.org_policies:
        return ABSENT
    rule: dict[str, Any] = {"enforce": True}
    if constraint == "iam.managed.allowedPolicyMembers":
        named = [*faults.organization.allowed_members]
        own = ["//cloudresourcemanager.googleapis.com/organizations/1"]
        rule["parameters"] = {"allowedMemberSubjects": named, "allowedPrincipalSets": own}
    elif constraint == "iam.allowedPolicyMemberDomains":
        rule = {"values": {"allowedValues": ["is:C01abcdef"]}}
    return {"name": given["name"], "spec": {"rules": [rule]}}


@pytest.mark.parametrize("baseline", [LEGACY, MANAGED], ids=["legacy", "managed"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_new_organization(stack: str, baseline: tuple[OrgPolicy, ...]) -> None:
    """Only the function that stops jobs needs a member of Google: clusters need no exception."""
    faults = scenario(*baseline, *HARDENED)
    sharing = {one for one in baseline if one.rpartition(".")[2].startswith("allowedPolicyMember")}
    assert refused(stack, faults) == reported(stack, faults) == (sharing if stack == "small-gcp" else set())


@pytest.mark.parametrize("stack", STACKS)
def test_a_new_organization_that_allows_the_publisher_of_budgets(stack: str) -> None:
    faults = scenario(*MANAGED, *HARDENED, allowed_members=(PUBLISHER,))
    assert refused(stack, faults) == reported(stack, faults) == set()


@pytest.mark.parametrize("stack", STACKS)
def test_a_project_without_an_organization(stack: str) -> None:
    assert refused(stack, Faults()) == reported(stack, Faults()) == set()
