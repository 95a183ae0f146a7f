"""The budget on Google Cloud: filters, thresholds and addresses."""

from typing import Any, cast

import pulumi
import pytest

from components.gcp.money.budget import CurrencyArgs, GcpBudget, GcpBudgetArgs, amount
from infra.errors import UserError
from rehearsal.gcp.rules import BOOK
from tests.components.graph import Graph, deploy_graph

BUDGET = "gcp:billing/budget:Budget"
CHANNEL = "gcp:monitoring/notificationChannel:NotificationChannel"
DEFAULTS = {
    "project_number": "123456789012",
    "billing_account": "012345-6789AB-CDEF01",
    "label_key": "trainstack-stack",
    "label_value": "dev-gcp",
    "monthly_limit_usd": 20_000.0,
    "alert_emails": ["ml@example.com", "money@example.com"],
}


def made(name: str = "dev-gcp-budget", **changes: Any) -> Graph:
    def program() -> dict[str, pulumi.Output[Any]]:
        budget = GcpBudget(name, cast(GcpBudgetArgs, DEFAULTS | changes))
        return {"name": budget.budget_name}

    return deploy_graph(
        program, {CHANNEL: lambda args: {"name": f"projects/p/notificationChannels/{args.name}"}}
    )


def budget(graph: Graph) -> dict[str, Any]:
    return dict(graph.cloud.one(BUDGET).properties)


def test_it_counts_the_stack_by_project_number_and_its_one_label() -> None:
    counted = budget(made())["budgetFilter"]
    assert counted["projects"] == ["projects/123456789012"]
    assert counted["labels"] == {"trainstack-stack": "dev-gcp"}
    assert counted["calendarPeriod"] == "MONTH"


def test_credits_that_run_out_do_not_hide_what_is_used() -> None:
    counted = budget(made())["budgetFilter"]
    assert counted["creditTypesTreatment"] == "INCLUDE_SPECIFIED_CREDITS"
    assert not {"PROMOTION", "FREE_TIER"} & set(counted["creditTypes"])
    assert "COMMITTED_USAGE_DISCOUNT" in counted["creditTypes"], "a discount is no gift"


def test_it_warns_at_half_four_fifths_and_all_of_it_and_when_all_of_it_is_foreseen() -> None:
    rules = {(row["thresholdPercent"], row["spendBasis"]) for row in budget(made())["thresholdRules"]}
    assert rules == {
        (0.5, "CURRENT_SPEND"),
        (0.8, "CURRENT_SPEND"),
        (1.0, "CURRENT_SPEND"),
        (1.0, "FORECASTED_SPEND"),
    }


def test_named_addresses_get_mail_and_no_others() -> None:
    graph = made()
    rule = budget(graph)["allUpdatesRule"]
    people = graph.cloud.of_type(CHANNEL)
    assert {row.properties["labels"]["email_address"] for row in people} == set(DEFAULTS["alert_emails"])  # type: ignore[call-overload]
    assert {row.properties["type"] for row in people} == {"email"}
    # By resource name; by id or address the API refuses them.
    assert rule["monitoringNotificationChannels"] == [
        f"projects/p/notificationChannels/{row.name}" for row in people
    ]
    assert rule["disableDefaultIamRecipients"] is True
    assert rule["enableProjectLevelRecipients"] is False


def test_it_needs_no_member_of_another_organization() -> None:
    graph = made()
    assert "pubsubTopic" not in budget(graph)["allUpdatesRule"]
    assert graph.cloud.of_type("gcp:pubsub/topicIAMMember:TopicIAMMember") == []


@pytest.mark.parametrize(
    ("usd", "units", "nanos"),
    [(20_000.0, "20000", None), (0.1, "0", 100_000_000), (19.99, "19", 990_000_000)],
)
def test_an_amount_is_exact_to_the_cent(usd: float, units: str, nanos: int | None) -> None:
    found = amount(usd)
    assert (found["units"], found.get("nanos")) == (units, nanos)
    # In another currency the account refuses it; without a currency it would take euros for dollars.
    assert found["currency_code"] == "USD"


@pytest.mark.parametrize(("usd", "units"), [(1000.0, "920"), (0.1, "1"), (999.5, "920")])
def test_an_amount_in_another_currency_is_rounded_up_to_whole_units(usd: float, units: str) -> None:
    currency: CurrencyArgs = {"code": "EUR", "per_usd": 0.92}
    assert amount(usd, currency) == {"currency_code": "EUR", "units": units}
    assert budget(made(currency=currency))["amount"]["specifiedAmount"] == {
        "currencyCode": "EUR",
        "units": "18400",
    }


@pytest.mark.parametrize(
    ("usd", "per_usd", "units"), [(100.0, 1.1, "110"), (20_000.0, 83.001, "1660020"), (1.0, 1e-7, "1")]
)
def test_an_amount_of_whole_units_is_not_rounded_up(usd: float, per_usd: float, units: str) -> None:
    assert amount(usd, {"code": "EUR", "per_usd": per_usd})["units"] == units


def test_a_long_name_is_shown_in_full_or_with_a_digest() -> None:
    graph = made("a" * 80)
    assert len(budget(graph)["displayName"]) <= 60
    assert graph.outputs["name"] == budget(graph)["displayName"]
    assert made().outputs["name"] == "dev-gcp-budget-monthly"


def test_the_service_would_refuse_nothing_that_a_rule_knows() -> None:
    asked = budget(made())
    assert [*BOOK.broken_alone(BUDGET, asked)] == []
    asked["budgetFilter"] = asked["budgetFilter"] | {"creditTypesTreatment": "EXCLUDE_ALL_CREDITS"}
    assert [rule.id for rule, _ in BOOK.broken_alone(BUDGET, asked)] == ["GCP-BILLING-005"]


@pytest.mark.parametrize("usd", [0.0, -1.0, float("inf"), float("nan")])
def test_an_amount_that_no_budget_can_have_is_refused(usd: float) -> None:
    with pytest.raises(UserError, match="amount-not-positive"):
        made(monthly_limit_usd=usd)


def test_everything_wrong_is_reported_at_once() -> None:
    with pytest.raises(UserError) as caught:
        made(monthly_limit_usd=0.0, alert_emails=["a@example.com"] * 6)
    assert [problem.path for problem in caught.value.problems] == ["monthly_limit_usd", *["alert_emails"] * 2]


def test_a_budget_without_an_address_is_refused() -> None:
    with pytest.raises(UserError, match="alarm-without-address"):
        made(alert_emails=[])
