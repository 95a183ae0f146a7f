"""The check of policies of the organization (SCPs), by dry runs.

IAM's simulation does not evaluate SCPs with conditions, and most published ones have conditions, such as an
exception for a network team (IAM User Guide, "Testing IAM policies with the IAM policy simulator"). A dry run
of EC2 evaluates all policies, and creates nothing. It is possible for EC2 alone; docs/reference/preflight.md
lists the policies that concern other services.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from infra.clouds.aws.login import DENIED, code_and_message
from infra.naming import lasting_tags
from infra.stackspec.layouts import ClusterLayout
from stacks.clouds.tags import owners_tags
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

CHECK = "organization"
# EC2 API Reference, DryRun: the error of a request that would have succeeded.
_WOULD_SUCCEED = "DryRunOperation"
# IAM User Guide, "Access denied error messages": the type of policy is named in the message.
_BY_ORGANIZATION = ("service control policy", "resource control policy")


def policies(account: Account) -> Iterator[Answer]:
    """Requests of EC2 that published policies of organizations deny are allowed to the deployer."""
    denied = False
    requests = _requests(account)
    asked = ", ".join(operation.replace("_", "-") for operation in requests)
    for operation, values in requests.items():
        answer = _tried(account, operation, values)
        if answer is not None:
            denied = True
            yield answer
    if not denied:
        yield Answer(
            CHECK, State.READY, f"allowed to these credentials, with the tags of the stack: aws ec2 {asked}"
        )


def _requests(account: Account) -> Mapping[str, Mapping[str, Any]]:
    tags = {**owners_tags(account.spec), **lasting_tags(account.spec.name)}
    rows = [{"Key": key, "Value": value} for key, value in tags.items()]
    layout = account.layout

    def tagged(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": rows}]

    found: dict[str, Mapping[str, Any]] = {
        "create_vpc": {"CidrBlock": layout.network_cidr, "TagSpecifications": tagged("vpc")},
        "create_internet_gateway": {"TagSpecifications": tagged("internet-gateway")},
    }
    if isinstance(layout, ClusterLayout):
        disk = {"AvailabilityZone": layout.zones[0], "Size": 1, "VolumeType": "gp3", "Encrypted": True}
        found["create_volume"] = {**disk, "TagSpecifications": tagged("volume")}
    return found


def _tried(account: Account, operation: str, asked: Mapping[str, Any]) -> Answer | None:
    try:
        getattr(account.client("ec2"), operation)(DryRun=True, **asked)
    except ClientError as error:
        code, message = code_and_message(error)
        if code == _WOULD_SUCCEED:
            return None
        if code not in DENIED:
            raise
        return _denied(error.operation_name, message)
    return None


def _denied(operation: str, message: str) -> Answer:
    kind = next((one for one in _BY_ORGANIZATION if one in message), None)
    if kind is None:
        text = f"ec2:{operation} is not allowed to these credentials"
        return Answer(CHECK, State.UNKNOWN, text, "Check with the credentials of the deployer.")
    text = f"a {kind} of the organization denies ec2:{operation}"
    fix = "Set what it demands, or ask for an exception (docs/reference/preflight.md)."
    return Answer(CHECK, State.SHORT, text, fix)
