"""Checks of cost monitoring: anomaly detection, and the cost allocation tags of budgets."""

from collections.abc import Iterator, Sequence

from botocore.exceptions import ClientError

from infra.naming import TAG_PREFIX
from infra.stackspec.layouts import SmallLayout
from stacks.clouds.budgets import budget_scopes
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

_NO_ORGANIZATION = "AWSOrganizationsNotInUseException"
# "Linked account doesn't have access to cost allocation tags." (hashicorp/terraform-provider-aws issue 37636)
_MEMBER = "Linked account"


def anomalies(account: Account) -> Iterator[Answer]:
    """Anomaly detection by tag needs a management account, or one without an organization."""
    if account.spec.budget.anomaly_usd is None:
        return
    asked = account.found("organizations", "describe_organization", _NO_ORGANIZATION)
    found = account.on.account_id if asked is None else asked["Organization"]["MasterAccountId"]
    if found == account.on.account_id:
        yield Answer("cost-anomalies", State.READY, "this account can detect anomalies by tag")
        return
    text = f"only the management account {found} can detect anomalies by tag"
    yield Answer("cost-anomalies", State.SHORT, text, "Set budget.anomaly_usd to null.")


def tags(account: Account) -> Iterator[Answer]:
    """Each tag that a budget filters by is activated for cost allocation: otherwise that budget shows 0.

    Tags are activated key by key (botocore 1.44.5 ce/2017-10-25 UpdateCostAllocationTagsStatus).
    """
    keys = _keys(account)
    try:
        asked = account.client("ce").list_cost_allocation_tags(TagKeys=keys, Type="UserDefined")
    except ClientError as error:
        if _MEMBER not in error.response["Error"].get("Message", ""):
            raise
        text = f"only the payer account can read whether {', '.join(keys)} are activated"
        fix = f"In that account: {_activate(keys)}. Then --skip cost-tags here."
        yield Answer("cost-tags", State.UNKNOWN, text, fix)
        return
    status = {row["TagKey"]: row["Status"] for row in asked["CostAllocationTags"]}
    inactive = [key for key in keys if status.get(key, "Active") != "Active"]
    unlisted = [key for key in keys if key not in status]
    if inactive:
        text = f"not activated: {', '.join(inactive)}; budgets that filter by them show 0"
        yield Answer("cost-tags", State.SHORT, text, _activate(inactive))
    if unlisted:
        text = f"no resource has {', '.join(unlisted)} yet: AWS lists a tag about a day after its first use"
        yield Answer("cost-tags", State.NOTE, text, f"Then: {_activate(unlisted)}")
    if not inactive and not unlisted:
        yield Answer("cost-tags", State.READY, f"activated: {', '.join(keys)}")


def _keys(account: Account) -> list[str]:
    layout = account.layout
    scopes = budget_scopes(account.spec, layout) if isinstance(layout, SmallLayout) else ()
    return [f"{TAG_PREFIX}:{scope}" for scope in dict.fromkeys(("stack", *(one.scope for one in scopes)))]


def _activate(keys: Sequence[str]) -> str:
    status = " ".join(f"TagKey={key},Status=Active" for key in keys)
    return f"aws ce update-cost-allocation-tags-status --cost-allocation-tags-status {status}"
