"""Billing of the project, and the right to create a budget."""

from typing import Any

import pytest

from tests.trainstack.preflight.gcp.asking import BILLING, DENIED, ID, Google, asked, project
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import billing

RATES = "cloudbilling.services.skus.list"
INFO, ACCOUNT, TEST = (
    "cloudbilling.projects.getBillingInfo",
    "cloudbilling.billingAccounts.get",
    "cloudbilling.billingAccounts.testIamPermissions",
)
NAME = f"billingAccounts/{BILLING}"


def info(**changes: Any) -> Any:
    said = {
        "name": f"projects/{ID}/billingInfo",
        "projectId": ID,
        "billingAccountName": NAME,
        "billingEnabled": True,
    }
    (answer,) = asked(billing.enabled, project(Google({INFO: {**said, **changes}})))
    return answer


@pytest.mark.parametrize(
    ("currency", "written", "states", "fact"),
    [
        ("EUR", None, [State.SHORT, State.READY], "{code: EUR, per_usd: 0.92}"),
        ("EUR", {"code": "GBP", "per_usd": 0.8}, [State.SHORT, State.READY], "{code: EUR, per_usd: 0.92}"),
        ("EUR", {"code": "EUR", "per_usd": 0.9}, [State.READY], None),
        ("EUR", {"code": "EUR", "per_usd": 0.5}, [State.NOTE, State.READY], "{code: EUR, per_usd: 0.92}"),
        ("USD", {"code": "EUR", "per_usd": 0.9}, [State.SHORT, State.READY], "Remove on.billing_currency"),
        ("USD", None, [State.READY], None),
    ],
)
def test_budgets_are_in_the_currency_of_the_account(
    currency: str, written: Any, states: list[State], fact: str | None
) -> None:
    every = [f"billing.budgets.{verb}" for verb in ("create", "delete", "get", "update")]
    google = Google(
        {
            ACCOUNT: {"name": NAME, "open": True, "currencyCode": currency},
            TEST: {"permissions": every},
            RATES: {"skus": [{"pricingInfo": [{"currencyConversionRate": 0.92}]}]},
        }
    )
    found = asked(billing.account, project(google, on__billing_currency=written))
    assert [one.state for one in found] == states
    assert fact is None or fact in found[0].fix
    assert all(given["currencyCode"] == currency for given in google.given(RATES))


def test_a_price_list_without_the_currency_leaves_the_rate_open() -> None:
    account = {"name": NAME, "open": True, "currencyCode": "XAF"}
    google = Google({ACCOUNT: account, TEST: {"permissions": []}, RATES: DENIED})
    found = asked(billing.account, project(google))
    assert found[0].state is State.SHORT and "code: XAF" in found[0].fix


def account(granted: list[str], **about: Any) -> Any:
    said = {"name": NAME, "open": True, "displayName": "ML", **about}
    google = Google({ACCOUNT: said, TEST: {"permissions": granted}})
    (answer,) = asked(billing.account, project(google))
    return answer


def test_a_project_that_is_paid_by_the_account_of_the_spec() -> None:
    assert info().state is State.READY


def test_a_project_without_billing_is_a_clear_error() -> None:
    # Google leaves out what is empty or false.
    google = Google({INFO: {"name": f"projects/{ID}/billingInfo", "projectId": ID}})
    (answer,) = asked(billing.enabled, project(google))
    assert answer.state is State.SHORT and "billing account" in answer.text
    assert answer.fix == f"gcloud billing projects link {ID} --billing-account={BILLING}"


def test_a_project_that_another_account_pays() -> None:
    answer = info(billingAccountName="billingAccounts/000000-000000-000000")
    assert answer.state is State.SHORT and "012345-6789AB-CDEF01" in answer.text


def test_a_closed_account() -> None:
    assert info(billingEnabled=False).state is State.SHORT
    assert account([], open=False).state is State.SHORT


def test_a_deployer_that_may_keep_no_budget() -> None:
    answer = account(["billing.budgets.get"])
    assert answer.state is State.SHORT
    assert "billing.budgets.create, billing.budgets.delete, billing.budgets.update" in answer.text
    assert "roles/billing.costsManager" in answer.fix
    every = [f"billing.budgets.{verb}" for verb in ("create", "delete", "get", "update")]
    assert account(every).state is State.READY


def test_an_account_that_may_not_be_seen_is_unknown() -> None:
    (answer,) = asked(billing.account, project(Google({ACCOUNT: DENIED})))
    assert answer.state is State.UNKNOWN and "billing.accounts.get" in answer.fix
