"""Policies of an organization that would stop the deployment."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.trainstack.preflight.gcp.asking import ABSENT, DENIED, ID, Google, asked, project
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp import apis, policies

MEMBERS = "iam.managed.allowedPolicyMembers"
GET = "orgpolicy.projects.policies.getEffectivePolicy"
OPEN: list[dict[str, Any]] = [{"allowAll": True}]


def judged(rules: Mapping[str, list[dict[str, Any]]], **changes: Any) -> list[Answer]:
    """The answers where these constraints have such rules, and all others bind nothing."""

    def respond(given: Mapping[str, Any]) -> Any:
        start, _, constraint = str(given["name"]).rpartition("/")
        assert start == f"projects/{ID}/policies"
        free = [{"enforce": False}] if constraint.startswith("iam.") else OPEN
        return {"name": given["name"], "spec": {"rules": rules.get(constraint, free)}}

    return asked(policies.blocking, project(Google({GET: respond}), **changes))


def values(allowed: tuple[str, ...] = (), denied: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    named = {"allowedValues": [*allowed], "deniedValues": [*denied]}
    return [{"values": {key: found for key, found in named.items() if found}}]


def test_an_organization_that_forbids_nothing() -> None:
    (answer,) = judged({})
    assert answer.state is State.READY


def test_a_project_in_no_organization_has_no_policies() -> None:
    (answer,) = asked(policies.blocking, project(Google({GET: ABSENT})))
    assert answer.state is State.READY
    (answer,) = asked(policies.blocking, project(Google({GET: {"name": "x"}})))
    assert answer.state is State.READY


def test_policies_that_may_not_be_seen_are_unknown() -> None:
    (answer,) = asked(policies.blocking, project(Google({GET: DENIED})))
    assert answer.state is State.UNKNOWN and "orgpolicy.policy.get" in answer.fix


@pytest.mark.parametrize(
    "constraint",
    [
        "compute.vmCanIpForward",
        "compute.restrictVpcPeering",
        "compute.restrictCloudNATUsage",
        "gcp.resourceLocations",
        "gcp.restrictServiceUsage",
    ],
)
def test_a_list_that_denies_everything_stands_in_the_way(constraint: str) -> None:
    (answer,) = judged({constraint: [{"denyAll": True}]})
    assert answer.state is State.SHORT and answer.text.startswith(f"{constraint}: ")


def test_all_blocking_policies_are_reported_at_once() -> None:
    rules = {
        "compute.vmCanIpForward": [{"denyAll": True}],
        "iam.disableServiceAccountCreation": [{"enforce": True}],
    }
    assert [one.state for one in judged(rules)] == [State.SHORT, State.SHORT]


@pytest.mark.parametrize(
    ("allowed", "denied", "state"),
    [
        (("in:us-central1-locations",), (), State.READY),
        (("in:us-locations",), (), State.READY),
        (("us-central1",), (), State.READY),
        (("is:us-central1",), (), State.READY),
        (("in:europe-locations", "in:us-locations"), (), State.READY),
        (("in:us-east4-locations",), (), State.SHORT),
        (("in:europe-locations",), (), State.SHORT),
        (("us",), (), State.SHORT),  # the multi-region alone
        (("us-central1-a",), (), State.SHORT),  # one zone alone
        (("in:eu-locations",), (), State.UNKNOWN),  # whose members are not known here
        (("in:low-carbon-us-locations",), (), State.UNKNOWN),
        ((), ("in:us-locations",), State.SHORT),
        ((), ("in:asia-locations",), State.READY),
        ((), ("in:eu-locations",), State.UNKNOWN),
        (("in:us-locations",), ("in:us-central1-locations",), State.SHORT),
    ],
)
def test_where_resources_may_be(allowed: tuple[str, ...], denied: tuple[str, ...], state: State) -> None:
    (answer,) = judged({"gcp.resourceLocations": values(allowed, denied)})
    assert answer.state is state, answer.text


def test_services_that_may_not_be_used_are_named() -> None:
    (answer,) = judged(
        {"gcp.restrictServiceUsage": values(denied=("lustre.googleapis.com", "run.googleapis.com"))}
    )
    assert answer.state is State.SHORT and answer.text.endswith(": lustre.googleapis.com")
    (answer,) = judged(
        {"gcp.restrictServiceUsage": values(denied=("lustre.googleapis.com",))}, data__shared_fs=None
    )
    assert answer.state is State.READY
    (answer,) = judged({"gcp.restrictServiceUsage": values(allowed=tuple(apis.wanted(project(Google()))))})
    assert answer.state is State.READY


@pytest.mark.parametrize(
    ("allowed", "state"),
    [
        (f"under:projects/{ID}", State.READY),
        ("under:organizations/123456789", State.UNKNOWN),
        (f"projects/{ID}/zones/us-central1-a/instances/router", State.SHORT),
    ],
)
def test_machines_that_may_forward_packets(allowed: str, state: State) -> None:
    (answer,) = judged({"compute.vmCanIpForward": values((allowed,))})
    assert answer.state is state


def test_networks_with_restricted_peering_are_unknown() -> None:
    (answer,) = judged({"compute.restrictVpcPeering": values(("under:organizations/1",))})
    assert answer.state is State.UNKNOWN


def test_a_rule_that_depends_on_tags_is_unknown() -> None:
    condition = {"expression": "resource.matchTag('1/env', 'prod')"}
    tagged: list[dict[str, Any]] = [{"denyAll": True, "condition": condition}, {"allowAll": True}]
    (answer,) = judged({"compute.vmCanIpForward": tagged})
    assert answer.state is State.UNKNOWN
    switched: list[dict[str, Any]] = [{"enforce": True, "condition": condition}, {"enforce": False}]
    (answer,) = judged({"iam.disableServiceAccountCreation": switched})
    assert answer.state is State.UNKNOWN


def test_members_of_other_organizations() -> None:
    allowed = values(("C01abcdef",))
    found = judged({"iam.allowedPolicyMemberDomains": allowed})
    assert [one.state for one in found] == [State.NOTE]
    found = judged({"iam.allowedPolicyMemberDomains": allowed}, on__admins=["user:anna@gmail.com"])
    assert [one.state for one in found] == [State.SHORT, State.NOTE]
    assert "user:anna@gmail.com" in found[0].text
    assert [one.state for one in judged({"iam.allowedPolicyMemberDomains": OPEN})] == [State.READY]


def managed(*subjects: str, **more: Any) -> dict[str, list[dict[str, Any]]]:
    own = ["//cloudresourcemanager.googleapis.com/organizations/1"]
    parameters = {"allowedMemberSubjects": [*subjects], "allowedPrincipalSets": own}
    return {MEMBERS: [{"enforce": True, "parameters": parameters, **more}]}


@pytest.mark.parametrize(
    ("rules", "state"),
    [
        (managed(), State.SHORT),
        (managed("user:Anna@gmail.com"), State.NOTE),
        (managed(condition={"expression": "resource.matchTag('1/env', 'prod')"}), State.UNKNOWN),
        ({MEMBERS: [{"enforce": False}]}, State.READY),
    ],
)
def test_members_of_other_organizations_by_the_managed_constraint(rules: Any, state: State) -> None:
    first = judged(rules, on__admins=["user:anna@gmail.com"])[0]
    assert first.state is state
    assert (state is not State.SHORT) or (MEMBERS in first.text and "user:anna@gmail.com" in first.fix)
