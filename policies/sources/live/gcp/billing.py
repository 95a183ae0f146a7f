"""Budgets of the billing account of the project; Asset Inventory has none.

Shapes: google/services/billing/resource_billing_budget.go of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.gcp.assets import OF_PROJECT, end_of, last, project_number
from policies.sources.live.gcp.project import above
from policies.sources.live.mapping import Each, LiveKind, One, View, same
from policies.sources.live.queries import ApiQuery

_BILLING = "cloudbilling.projects.getBillingInfo"
QUERIES = (
    # Without a billing account the name is empty: no item.
    ApiQuery(
        "cloudbilling", "projects.getBillingInfo", "billingAccountName && @", given={"name": OF_PROJECT},
        right="resourcemanager.projects.get",
    ),
    ApiQuery(
        "billingbudgets", "billingAccounts.budgets.list", "budgets", of=_BILLING,
        by={"parent": "billingAccountName"}, right="billing.budgets.list",
    ),
)  # fmt: skip


def _counts(view: View) -> bool:
    """Return whether a budget covers the project: its filter names the project or an ancestor."""
    look = view.look
    ours = {f"projects/{look.account}", f"projects/{project_number(look)}"}
    upwards = {
        item.answer.get("name") for level in ("folder", "organization") for item in look.items(above(level))
    }
    named = view.at("budgetFilter.projects"), view.at("budgetFilter.resourceAncestors")
    chosen = {one for names in named for one in names or ()}
    return not chosen or bool(chosen & (ours | upwards))


def _labels(view: View) -> Any:
    """One value per key, which the API writes as a list."""
    found = view.at("labels") or {}
    return {
        key: values[0] if isinstance(values, list) and values else values for key, values in found.items()
    }


KINDS = (
    LiveKind(
        "gcp:billing/budget:Budget",
        "billingbudgets.billingAccounts.budgets.list",
        "{name}",
        {
            "allUpdatesRule": One(
                "notificationsRule",
                {
                    **same("disableDefaultIamRecipients", "enableProjectLevelRecipients"),
                    **same("monitoringNotificationChannels", "pubsubTopic", "schemaVersion"),
                },
            ),
            "billingAccount": end_of("asked.parent"),
            "budgetFilter": One(
                "budgetFilter",
                {
                    **same("calendarPeriod", "projects", "resourceAncestors", "services"),
                    "labels": _labels,
                },
            ),
            "displayName": "displayName",
            "name": end_of("name"),
            "thresholdRules": Each("thresholdRules", same("spendBasis", "thresholdPercent")),
        },
        name=lambda view: view.at("displayName") or last(view.at("name")),
        when=_counts,
        regionless=True,
    ),
)
