"""Checks of cost monitoring: anomaly detection, and the cost allocation tag of the stack."""

from collections.abc import Iterator

from botocore.exceptions import ClientError

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import STACK_TAG, Account

_NO_ORGANIZATION = "AWSOrganizationsNotInUseException"
# "Linked account doesn't have access to cost allocation tags." (hashicorp/terraform-provider-aws issue 37636)
_MEMBER = "Linked account"
_ACTIVATE = (
    "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status "
    f"TagKey={STACK_TAG},Status=Active"
)


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
    """The tag of the stack is activated for cost allocation: otherwise the budget always shows 0."""
    try:
        found = account.client("ce").list_cost_allocation_tags(TagKeys=[STACK_TAG], Type="UserDefined")
    except ClientError as error:
        if _MEMBER not in error.response["Error"].get("Message", ""):
            raise
        text = f"only the payer account can read whether the tag {STACK_TAG} is activated"
        fix = f"In that account: {_ACTIVATE}. Then --skip cost-tags here."
        yield Answer("cost-tags", State.UNKNOWN, text, fix)
        return
    rows = found["CostAllocationTags"]
    if not rows:
        text = f"no resource has the tag {STACK_TAG} yet: AWS lists it about a day after the deployment"
        yield Answer("cost-tags", State.NOTE, text, f"Then: {_ACTIVATE}")
    elif rows[0]["Status"] != "Active":
        text = f"the tag {STACK_TAG} is not activated: the budget shows 0"
        yield Answer("cost-tags", State.SHORT, text, _ACTIVATE)
    else:
        yield Answer("cost-tags", State.READY, f"{STACK_TAG} is activated")
