"""Cost allocation tags and anomaly detection."""

import pytest

from tests.trainstack.preflight.aws.asking import ACCOUNT, Cloud, account, asked
from tests.trainstack.preflight.aws.test_jobs import account as small_account
from trainstack.preflight.answers import State
from trainstack.preflight.aws import money

LIST = "list_cost_allocation_tags"


@pytest.mark.parametrize(
    ("status", "state"), [("Active", State.READY), ("Inactive", State.SHORT), (None, State.NOTE)]
)
def test_budgets_need_the_tag_of_the_stack(status: str | None, state: State) -> None:
    rows = [{"TagKey": "trainstack:stack", "Type": "UserDefined", "Status": status}] if status else []
    cloud = Cloud().answers("ce", LIST, {"CostAllocationTags": rows})
    (answer,) = asked(money.tags, account(cloud))
    assert answer.state is state
    assert state is State.READY or "update-cost-allocation-tags-status" in answer.fix


@pytest.mark.parametrize(
    ("listed", "states", "keys"),
    [
        ({"stack": "Active"}, [State.NOTE], ["team", "person"]),
        ({"stack": "Active", "team": "Inactive"}, [State.SHORT, State.NOTE], ["team", "person"]),
        ({"stack": "Active", "team": "Active", "person": "Active"}, [State.READY], []),
    ],
)
def test_budgets_of_teams_and_people_need_the_tags_that_they_filter_by(
    listed: dict[str, str], states: list[State], keys: list[str]
) -> None:
    rows = [
        {"TagKey": f"trainstack:{key}", "Type": "UserDefined", "Status": status}
        for key, status in listed.items()
    ]
    cloud = Cloud().answers("ce", LIST, {"CostAllocationTags": rows})
    answers = asked(money.tags, small_account(cloud))
    assert [answer.state for answer in answers] == states
    activated = " ".join(answer.fix for answer in answers)
    assert [key for key in ("stack", "team", "person") if f"TagKey=trainstack:{key}," in activated] == keys


def test_a_member_of_an_organization_cannot_see_the_tag() -> None:
    said = "Failed to list Cost Allocation Tags: Linked account doesn't have access to cost allocation tags."
    (answer,) = asked(money.tags, account(Cloud().refuses("ce", LIST, "AccessDeniedException", said)))
    assert answer.state is State.UNKNOWN
    assert "--skip cost-tags" in answer.fix


def test_anomalies_are_asked_about_only_where_they_are_watched() -> None:
    assert asked(money.anomalies, account(Cloud())) == []


@pytest.mark.parametrize(
    ("payer", "state"), [(ACCOUNT, State.READY), ("210987654321", State.SHORT), (None, State.READY)]
)
def test_a_tag_is_watched_from_the_account_that_pays(payer: str | None, state: State) -> None:
    cloud = Cloud()
    if payer:
        cloud.answers("organizations", "describe_organization", {"Organization": {"MasterAccountId": payer}})
    else:
        cloud.refuses("organizations", "describe_organization", "AWSOrganizationsNotInUseException")
    (answer,) = asked(money.anomalies, account(cloud, budget__anomaly_usd=500))
    assert answer.state is state
    assert state is State.READY or "budget.anomaly_usd to null" in answer.fix
