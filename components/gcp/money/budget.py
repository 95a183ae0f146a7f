"""A budget that warns in time."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.mail import mail_channels
from infra.catalog.gcp import facts
from infra.catalog.money import amount_problems, email_problems
from infra.errors import UserError
from infra.naming import sanitize

# Share of the limit, and whether it is spent or expected to be spent by the end of the month.
WARNINGS = ((0.5, "CURRENT_SPEND"), (0.8, "CURRENT_SPEND"), (1.0, "CURRENT_SPEND"), (1.0, "FORECASTED_SPEND"))

# Discounts lower the price permanently. Google's other credits, free tiers and promotions, run out,
# and then the same usage costs money: it must not hide it. Source: Cloud Billing documentation, "Structure of
# Detailed data export" (credits.type).
LASTING_CREDITS = (
    "COMMITTED_USAGE_DISCOUNT",
    "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE",
    "DISCOUNT",
    "RESELLER_MARGIN",
    "SUBSCRIPTION_BENEFIT",
    "SUSTAINED_USAGE_DISCOUNT",
)

_NAME_LENGTH = 60  # pulumi-gcp 10.2.0, billing.Budget (display_name)


class CurrencyArgs(TypedDict):
    """The currency of a billing account other than US dollars."""

    code: str
    """Its code, such as `EUR`."""
    per_usd: float
    """Amount of it for one US dollar."""


class GcpBudgetArgs(TypedDict):
    """Limit, recipients of warnings, and the label that separates costs."""

    project_number: pulumi.Input[str]
    """Number of the stack's project: the Budget API returns this, so an id would look changed every time."""
    further_project_numbers: NotRequired[Sequence[pulumi.Input[str]]]
    """Numbers of further projects of the billing account whose cost counts, too. Default: none."""
    billing_account: str
    """The account that pays for the project."""
    label_key: str
    """Key of the label that every resource of the stack carries."""
    label_value: str
    """Value of that label."""
    monthly_limit_usd: float
    """Limit of the cost of the whole stack in a calendar month, in USD."""
    currency: NotRequired[CurrencyArgs | None]
    """The account's, where it is not US dollars."""
    alert_emails: Sequence[str]
    """Addresses for warnings, one to five; for more, use the address of a mailing list."""


class GcpBudget(Component):
    """A monthly budget for the stack; it sends mail.

    A budget warns; it stops nothing. GPUs keep running past 100 %, and billing data is hours to more than a
    day old, so a runaway job costs up to a day or two before a warning. Spending is limited by the size of
    the pools and the quotas of the queues. Months begin at midnight in UTC-8.

    It counts usage in the project with the stack's label, and takes exactly one label. It does not count
    resources without labels: traffic, logs and metrics, operations on keys and secrets, fees of the cluster
    and of support, unused reservations, and disks and load balancers of pods unless their class labels them.
    A second budget without the label, for the whole project, would see these, and every other stack in it.

    Only named addresses are warned. The default would be all administrators and users of the billing account,
    who may pay for a whole organization and do not know the limit of a stack. Mail comes from
    Cloud Monitoring, which needs no confirmation. There is no topic: Cloud Billing's publisher would need a
    role on it, which new organizations forbid (ADR 68).

    An account in another currency than the given one rejects the budget, rather than take euros for dollars.
    No budget covers a team: teams share nodes, which carry no team's label. The split of nodes by namespace
    that GKE offers is in the detailed billing export, which no budget reads.

    Untested in a real project.
    """

    budget_name: pulumi.Output[str]
    """Name of the budget in the billing account."""

    def __init__(self, name: str, args: GcpBudgetArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        check(args)
        people = mail_channels(self, f"{name}-mail", args["alert_emails"])
        budget = self._budget(name, args, people)
        self.budget_name = budget.display_name.apply(str)
        self.register_declared()

    def _budget(
        self,
        name: str,
        args: GcpBudgetArgs,
        people: Sequence[gcp.monitoring.NotificationChannel],
    ) -> gcp.billing.Budget:
        numbers = [args["project_number"], *args.get("further_project_numbers", ())]
        projects = [pulumi.Output.concat("projects/", number) for number in numbers]
        return gcp.billing.Budget(
            f"{name}-budget",
            billing_account=args["billing_account"],
            display_name=sanitize(f"{name}-monthly", max_length=_NAME_LENGTH),
            amount={"specified_amount": amount(args["monthly_limit_usd"], args.get("currency"))},
            budget_filter={
                "projects": projects,
                "labels": {args["label_key"]: args["label_value"]},
                "calendar_period": "MONTH",
                "credit_types_treatment": "INCLUDE_SPECIFIED_CREDITS",
                "credit_types": LASTING_CREDITS,
            },
            threshold_rules=[{"threshold_percent": share, "spend_basis": basis} for share, basis in WARNINGS],
            all_updates_rule={
                "monitoring_notification_channels": [channel.name for channel in people],
                "disable_default_iam_recipients": True,
                "enable_project_level_recipients": False,
            },
            opts=self.child(),
        )


def amount(
    usd: float, currency: CurrencyArgs | None = None
) -> gcp.billing.BudgetAmountSpecifiedAmountArgsDict:
    """The amount in the currency of the account: dollars to the cent, others in whole units.

    The Budget API takes only the account's currency (billingbudgets v1, BudgetAmount.specifiedAmount:
    `currencyCode` is optional, and must match). It is named: an account in another one rejects the budget.
    """
    if currency is not None:
        # Decimal: 100 * 1.1 is 110.00000000000001 as floats.
        exact = Decimal(str(usd)) * Decimal(str(currency["per_usd"]))
        return {"currency_code": currency["code"], "units": str(math.ceil(exact))}
    cents = round(usd * 100)
    found: gcp.billing.BudgetAmountSpecifiedAmountArgsDict = {
        "currency_code": "USD",
        "units": str(math.floor(cents / 100)),
    }
    if cents % 100:
        found["nanos"] = cents % 100 * 10_000_000
    return found


def check(args: GcpBudgetArgs) -> None:
    """Raise UserError with everything that Cloud Billing would reject."""
    problems = [*amount_problems("monthly_limit_usd", args["monthly_limit_usd"])]
    problems += email_problems("alert_emails", args["alert_emails"], facts.limits["budget_channels"])
    if problems:
        raise UserError(problems)
