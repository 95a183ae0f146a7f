"""Clusters in accounts and projects of their own, behind a manager on the same cloud."""

import copy
from typing import Any

import pytest

from infra import stackspec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.document import read
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import LargeLayout
from infra.stackspec.load import CONFIG
from infra.stackspec.several.derived import ClusterMember, digest, manager, workers
from infra.stackspec.stack import StackSpec
from tests.infra.stackspec.stack_files import Values, problems

OTHER, PROJECT = "210987654321", "example-ml-east"
ROLE = f"arn:aws:iam::{OTHER}:role/deploys"
ON_AWS: Values = {"account_id": OTHER, "assume_role": {"role_arn": ROLE, "external_id": "ml-1"}}
AT = "layout.clusters[1]"


def values(stack: str) -> Values:
    content = read(CONFIG / f"Pulumi.{stack}.yaml", "f")["config"]
    return {name.removeprefix("trainstack:"): copy.deepcopy(value) for name, value in content.items()}


def second(given: Values) -> Any:
    return given["spec"]["layout"]["clusters"][1]


@pytest.fixture
def aws() -> Values:
    given = values("large-aws")
    second(given).update({"on": copy.deepcopy(ON_AWS), "monthly_usd": 50000})
    return given


@pytest.fixture
def google() -> Values:
    given = values("large-gcp")
    second(given)["on"] = {"project": PROJECT, "impersonate": f"deploys@{PROJECT}.iam.gserviceaccount.com"}
    return given


def refused(given: Values) -> set[tuple[str, str]]:
    return {(problem.path, problem.code) for problem in problems(given)}


def loaded(given: Values) -> tuple[StackSpec, LargeLayout]:
    spec = stackspec.load("dev", given, "Pulumi.dev.yaml").spec
    assert isinstance(spec.layout, LargeLayout)
    return spec, spec.layout


def test_a_cluster_in_its_own_account_has_the_settings_of_the_stack_and_its_own_login(aws: Values) -> None:
    spec, layout = loaded(aws)
    one, own = workers(spec, layout)["use1"].on, spec.on
    assert isinstance(one, AwsSpec) and isinstance(own, AwsSpec) and one.assume_role
    assert (one.account_id, one.assume_role.role_arn, one.assume_role.external_id) == (OTHER, ROLE, "ml-1")
    kept = {"account_id", "assume_role", "pools"}
    assert one.model_dump(exclude=kept) == own.model_dump(exclude=kept)


def test_the_role_of_the_stack_is_not_that_of_another_account(aws: Values) -> None:
    aws["spec"]["on"]["assume_role"] = {"role_arn": "arn:aws:iam::123456789012:role/deploys"}
    del second(aws)["on"]["assume_role"]
    assert refused(aws) == {(f"{AT}.on.assume_role", "role-of-other-account-missing")}


def test_a_change_of_one_account_leaves_the_other_cluster_as_it_is(aws: Values) -> None:
    before, after = (workers(*loaded(given)) for given in (values("large-aws"), aws))
    assert digest(before["usw2"]) == digest(after["usw2"])
    assert digest(before["use1"]) != digest(after["use1"])


def test_budgets_of_two_accounts_are_the_one_amount(aws: Values) -> None:
    spec, layout = loaded(aws)
    made = [manager(spec, layout), workers(spec, layout)["use1"]]
    assert sum(one.budget.monthly_usd for one in made) == spec.budget.monthly_usd
    assert ClusterMember(spec, "use1").has_budget and not ClusterMember(spec, "usw2").has_budget


def test_one_billing_account_has_one_budget_for_two_projects(google: Values) -> None:
    spec, layout = loaded(google)
    made = workers(spec, layout)["use4"]
    assert isinstance(made.on, GcpSpec) and made.on.project == PROJECT
    assert made.budget.monthly_usd == spec.budget.monthly_usd
    assert not ClusterMember(spec, "use4").has_budget


def test_settings_of_pools_of_other_clusters_are_not_of_this_one(google: Values) -> None:
    google["spec"]["on"]["pools"] = {"h100": {"compact": False}, "h100-spot": {"compact": True}}
    spec, layout = loaded(google)
    on = workers(spec, layout)["use4"].on
    assert isinstance(on, GcpSpec) and list(on.pools) == ["use4-h100-spot"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"monthly_usd": None}, {(f"{AT}.monthly_usd", "budget-of-cluster-missing")}),
        ({"monthly_usd": 10**9}, {(f"{AT}.monthly_usd", "budget-parts-too-large")}),
        ({"system_machine": "m6i.xlarge"}, {(f"{AT}.system_machine", "setting-of-other-cloud")}),
        ({"idle_minutes": 20}, {(f"{AT}.idle_minutes", "setting-of-other-cloud")}),
    ],
    ids=str,
)
def test_a_cluster_in_its_own_account_is_checked(
    aws: Values, change: Values, expected: set[tuple[str, str]]
) -> None:
    second(aws).update(change)
    assert refused(aws) == expected


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"assume_role": None}, "assume_role", "role-of-other-account-missing"),
        (
            {"assume_role": {"role_arn": "arn:aws:iam::123456789012:role/deploys"}},
            "assume_role.role_arn",
            "arn-in-other-account",
        ),
        ({"assume_role": {"role_arn": ROLE, "external_id": "a b"}}, "assume_role.external_id", None),
        (
            {"permissions_boundary": "arn:aws:iam::123456789012:policy/roles"},
            "permissions_boundary",
            "arn-in-other-account",
        ),
        ({"admin_arns": [ROLE]}, "admin_arns[0]", "administrator-is-assumed-role"),
    ],
    ids=str,
)
def test_settings_of_the_account_are_checked_at_their_path(
    aws: Values, change: Values, path: str, code: str | None
) -> None:
    second(aws)["on"].update(change)
    found = refused(aws)
    assert {at for at, _ in found} == {f"{AT}.on.{path}"}
    assert code is None or found == {(f"{AT}.on.{path}", code)}


def test_a_boundary_of_the_stack_is_none_of_another_account(aws: Values) -> None:
    aws["spec"]["on"]["permissions_boundary"] = "arn:aws:iam::123456789012:policy/roles"
    assert refused(aws) == {(f"{AT}.on.permissions_boundary", "arn-in-other-account")}
    second(aws)["on"]["permissions_boundary"] = f"arn:aws:iam::{OTHER}:policy/roles"
    loaded(aws)


def test_a_part_of_a_budget_that_counts_the_project_is_refused(google: Values) -> None:
    second(google)["monthly_usd"] = 1000
    assert refused(google) == {(f"{AT}.monthly_usd", "budget-counted-twice")}
    second(google)["on"]["billing_account"] = "ABCDEF-ABCDEF-ABCDEF"
    loaded(google)
    del second(google)["monthly_usd"]
    assert refused(google) == {(f"{AT}.monthly_usd", "budget-of-cluster-missing")}


def test_settings_of_the_account_of_the_stack_itself_are_refused(aws: Values) -> None:
    second(aws)["on"]["account_id"] = "123456789012"
    found = refused(aws)
    assert {(f"{AT}.on", "setting-of-other-cloud"), (f"{AT}.monthly_usd", "setting-of-other-cloud")} <= found
