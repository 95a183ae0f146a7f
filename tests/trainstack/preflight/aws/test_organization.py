"""Policies of the organization that deny requests of the stack, by dry runs of EC2."""

from typing import Any

from tests.trainstack.preflight.aws.asking import Cloud, account, asked
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws import organization

OPERATIONS = ("create_vpc", "create_internet_gateway", "create_volume")
# IAM User Guide, "Access denied error messages", with EC2's prefix.
_DENIAL = (
    "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/a/b"
    " is not authorized to perform: ec2:{name} on resource: arn:aws:ec2:us-east-1:123456789012:{kind}/*"
    " with an explicit deny in a service control policy"
)


def answers(denied: dict[str, str], **changes: Any) -> list[Answer]:
    """The answers where these operations are refused with these messages."""
    cloud = Cloud()
    for operation in OPERATIONS:
        if operation in denied:
            cloud.refuses("ec2", operation, "UnauthorizedOperation", denied[operation])
        else:
            message = "Request would have succeeded, but DryRun flag is set."
            cloud.refuses("ec2", operation, "DryRunOperation", message)
    found = asked(organization.policies, account(cloud, **changes))
    assert cloud.is_exhausted()
    return found


def test_an_account_without_such_policies() -> None:
    (answer,) = answers({})
    assert answer.state is State.READY


def test_a_policy_against_internet_gateways_is_named() -> None:
    message = _DENIAL.format(name="CreateInternetGateway", kind="internet-gateway")
    (answer,) = answers({"create_internet_gateway": message})
    assert answer.state is State.SHORT
    assert "service control policy" in answer.text and "ec2:CreateInternetGateway" in answer.text


def test_all_denials_are_reported_together() -> None:
    found = answers({name: _DENIAL.format(name=name, kind="x") for name in ("create_vpc", "create_volume")})
    assert [one.state for one in found] == [State.SHORT, State.SHORT]


def test_credentials_of_another_person_answer_nothing() -> None:
    text = "You are not authorized to perform this operation."
    (answer,) = answers({"create_vpc": text})
    assert answer.state is State.UNKNOWN
