"""A manager and clusters in other accounts and projects fit together: trust, networks and budgets."""

import functools
import json
from dataclasses import replace
from typing import Any

import pulumi_gcp as gcp
import pytest

from infra import stackspec
from infra.naming import dispatcher_role
from infra.stackspec import StackSpec
from infra.stackspec.several.derived import ClusterMember, worker
from policies.evaluate import evaluate
from policies.rules import CATALOG
from policies.stack import Stack
from tests.components.graph import Graph
from tests.infra.several.test_accounts import ON_AWS, OTHER, PROJECT, ROLE, values
from tests.stacks.composition import judged
from tests.stacks.composition.large import AWS, GOOGLE, Large, exported

pytestmark = pytest.mark.more
OWN = "123456789012"
ON_GOOGLE = {"project": PROJECT, "impersonate": f"deploys@{PROJECT}.iam.gserviceaccount.com"}


def spec_of(large: Large, cluster: str, given: dict[str, Any]) -> StackSpec:
    content = values(large.stack)
    (row,) = [one for one in content["spec"]["layout"]["clusters"] if one["name"] == cluster]
    row.update(given)
    return stackspec.load(large.stack, content, f"Pulumi.{large.stack}.yaml").spec


@functools.cache
def composed(large: Large) -> tuple[StackSpec, dict[str, Graph]]:
    """The stacks of a large one whose second cluster is elsewhere; the manager's by the name of all."""
    given = {"on": ON_AWS, "monthly_usd": 50000} if large is AWS else {"on": ON_GOOGLE}
    spec = spec_of(large, large.clusters[1], given)
    graphs = {one: large.of_member(worker(spec, one), ClusterMember(spec, one)) for one in large.clusters}
    states = {f"{large.stack}-{one}": exported(graph) for one, graph in graphs.items()}
    return spec, {**graphs, large.stack: large.manager(states, spec)}


def stack(large: Large, name: str) -> Graph:
    return composed(large)[1][name]


def providers(graph: Graph, kind: str) -> dict[str, Any]:
    return {
        one.request.name: one.state
        for one in graph.registered
        if one.request.type == f"pulumi:providers:{kind}"
    }


def provider_of(graph: Graph, suffix: str) -> list[str]:
    """Names of the providers of resources with this end of their names."""
    return [
        one.request.provider.split("::")[3]
        for one in graph.registered
        if one.request.custom and one.request.name.endswith(suffix)
    ]


def test_a_stack_sends_requests_to_another_account_by_the_role_there() -> None:
    (found,) = providers(stack(AWS, "use1"), "aws").values()
    assert json.loads(found["allowedAccountIds"]) == [OTHER]
    (role,) = json.loads(found["assumeRoles"])
    assert (role["roleArn"], role["externalId"], role["duration"]) == (ROLE, "ml-1", "1h")
    assert 2 <= len(role["sessionName"]) <= 64
    (other,) = providers(stack(AWS, "usw2"), "aws").values()
    assert json.loads(other["allowedAccountIds"]) == [OWN] and "assumeRoles" not in other


def test_the_worker_trusts_the_role_of_the_manager_in_the_account_of_the_manager() -> None:
    login = stack(AWS, "use1").find("iam/role:Role", "-login-role")
    (statement,) = json.loads(login["assumeRolePolicy"])["Statement"]
    assert statement["Principal"] == {"AWS": f"arn:aws:iam::{OWN}:root"}
    role = f"arn:aws:iam::{OWN}:role/{dispatcher_role(AWS.stack)}"
    assert statement["Condition"] == {"ArnEquals": {"aws:PrincipalArn": role}}


def test_a_connection_to_another_account_is_accepted_and_routed_there() -> None:
    graph = stack(AWS, AWS.stack)
    asked = {
        name.rpartition("-connection")[0].rpartition("-")[2]: one.get("peerOwnerId")
        for name, one in graph.all("ec2/vpcPeeringConnection:VpcPeeringConnection").items()
    }
    assert asked == {"usw2": None, "use1": OTHER}
    own, there = "large-aws-aws", "large-aws-use1-aws"
    assert provider_of(graph, "-to-use1-connection") == [own]
    assert provider_of(graph, "-to-use1-accepted") == [there]
    assert set(provider_of(graph, "-to-use1-from-us-east-1a")) == {own}
    routes = [one for one in graph.registered if "-to-use1-to-" in one.request.name]
    assert routes and {one.request.provider.split("::")[3] for one in routes} == {there}
    tags = json.loads(providers(graph, "aws")[there]["defaultTags"])["tags"]
    assert tags["trainstack:stack"] == "large-aws-use1"


def test_each_account_has_a_budget_of_its_own_stacks() -> None:
    def counted(graph: Graph) -> tuple[str, list[str]]:
        (budget,) = graph.all("budgets/budget:Budget").values()
        return budget["limitAmount"], budget["costFilters"][0]["values"]

    spec, _ = composed(AWS)
    rest = f"{spec.budget.monthly_usd - 50000:.2f}"
    start = "user:trainstack:stack$"
    assert counted(stack(AWS, "use1")) == ("50000.00", [f"{start}large-aws-use1"])
    assert counted(stack(AWS, AWS.stack)) == (rest, [f"{start}large-aws", f"{start}large-aws-usw2"])
    assert not stack(AWS, "usw2").all("budgets/budget:Budget")


def test_a_stack_sends_requests_to_another_project_as_its_service_account() -> None:
    (found,) = providers(stack(GOOGLE, "use4"), "gcp").values()
    assert found["project"] == found["billingProject"] == PROJECT
    assert found["impersonateServiceAccount"] == f"deploys@{PROJECT}.iam.gserviceaccount.com"
    (other,) = providers(stack(GOOGLE, "usc1"), "gcp").values()
    assert "impersonateServiceAccount" not in other


def test_the_pods_of_a_manager_in_another_project_use_the_account_of_the_worker() -> None:
    """The manager's stack grants it: no pool of its project need exist before."""
    uses = [
        one for one in stack(GOOGLE, "use4").all("serviceaccount/iAMMember:IAMMember") if "-login-" in one
    ]
    assert not uses
    graph = stack(GOOGLE, GOOGLE.stack)
    ((name, granted),) = graph.all("serviceaccount/iAMMember:IAMMember").items()
    assert provider_of(graph, name) == ["large-gcp-use4-gcp"]
    assert granted["role"] == "roles/iam.workloadIdentityUser"
    email = exported(stack(GOOGLE, "use4"))["trainstack"]["worker"]["role"]
    assert granted["serviceAccountId"] == f"projects/{PROJECT}/serviceAccounts/{email}"
    assert "/workloadIdentityPools/example-ml-dev.svc.id.goog/subject/ns/" in granted["member"]


def test_the_projects_of_the_budget_are_read_with_their_own_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a preview before the clusters are deployed."""
    asked, real = {}, gcp.organizations.get_project_output

    def seen(**given: Any) -> Any:
        asked[given["project_id"]] = given["opts"].provider.pulumi_resource_name
        return real(**given)

    monkeypatch.setattr(gcp.organizations, "get_project_output", seen)
    monkeypatch.setattr("stacks.clusters.pulumi.runtime.is_dry_run", lambda: True)
    GOOGLE.manager({}, spec_of(GOOGLE, GOOGLE.clusters[1], {"on": ON_GOOGLE}))
    assert asked[PROJECT] == "large-gcp-use4-gcp"


def test_one_budget_counts_both_projects_of_a_billing_account() -> None:
    (budget,) = stack(GOOGLE, GOOGLE.stack).all("billing/budget:Budget").values()
    assert len(budget["budgetFilter"]["projects"]) == 2
    assert not stack(GOOGLE, "use4").all("billing/budget:Budget")


@pytest.mark.parametrize("large", [AWS, GOOGLE], ids=["aws", "gcp"])
def test_policies_judge_each_stack_as_before(large: Large) -> None:
    """As the shipped stacks of one account: other budgets and logins break no rule."""
    spec, graphs = composed(large)
    apart = f"trainstack:stack=large-aws-{AWS.clusters[1]}"  # its budget is in its own account
    for name, graph in graphs.items():
        region = spec.region if name == large.stack else worker(spec, name).region
        environment = name if name == large.stack else f"{large.stack}-{name}"
        given = judged.settings(environment)
        if large is AWS:
            covered = tuple(one for one in given.covered_tags if one != apart)
            counts = given.budget_tag == apart
            given = replace(given, covered_tags=covered)
            given = replace(given, budget_stack="", budget_tag="") if counts else given
        resources = judged.resources(graph, region)
        found = judged.reported(evaluate(Stack(resources, given), CATALOG.rules.values()), "fail")
        assert not found, (name, found)
