"""Destroying a stack removes spaces, apps and groups of the homes, in the order that the service takes."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from agents.aws.leftovers import function

KEYS = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "us-west-2"}
APP = {"DomainId": "d-abc", "SpaceName": "desk", "AppType": "JupyterLab", "AppName": "default"}
RULES = [{"IpProtocol": "tcp", "FromPort": 2049, "ToPort": 2049, "UserIdGroupPairs": [{"GroupId": "sg-2"}]}]


def client(service: str) -> Iterator[tuple[Any, Stubber]]:
    made = boto3.client(service, **KEYS)
    stub = Stubber(made)
    stub.activate()
    yield made, stub
    stub.assert_no_pending_responses()


@pytest.fixture
def sagemaker() -> Iterator[tuple[Any, Stubber]]:
    yield from client("sagemaker")


@pytest.fixture
def ec2() -> Iterator[tuple[Any, Stubber]]:
    yield from client("ec2")


def patient() -> float:
    return 600.0


def quiet(_: float) -> None:
    """A pause that takes no time."""


def group(number: int, *, rules: bool) -> dict[str, Any]:
    way = "inbound" if number == 1 else "outbound"
    return {
        "GroupId": f"sg-{number}",
        "GroupName": f"security-group-for-{way}-nfs-d-abc",
        "IpPermissions": RULES if rules else [],
        "IpPermissionsEgress": [],
    }


def test_apps_go_before_their_spaces(sagemaker: tuple[Any, Stubber]) -> None:
    service, stub = sagemaker
    asked = {"DomainIdEquals": "d-abc"}
    stub.add_response("list_apps", {"Apps": [{**APP, "Status": "InService"}]}, asked)
    stub.add_response("delete_app", {}, APP)
    stub.add_response("list_apps", {"Apps": [{**APP, "Status": "Deleting"}]}, asked)
    stub.add_response("list_apps", {"Apps": [{**APP, "Status": "Deleted"}]}, asked)
    stub.add_response("list_spaces", {"Spaces": [{"SpaceName": "desk", "Status": "InService"}]}, asked)
    stub.add_response("delete_space", {}, {"DomainId": "d-abc", "SpaceName": "desk"})
    stub.add_response("list_spaces", {"Spaces": []}, asked)
    assert function.empty_domain(service, "d-abc", patient, quiet) == ["app desk/default", "space desk"]


def test_what_does_not_go_in_time_is_said(sagemaker: tuple[Any, Stubber]) -> None:
    service, stub = sagemaker
    stub.add_response("list_apps", {"Apps": [{**APP, "Status": "Deleting"}]})
    with pytest.raises(function.StillThereError, match="1 apps of d-abc"):
        function.empty_domain(service, "d-abc", lambda: 0.0, quiet)


def test_groups_that_name_each_other_lose_their_rules_first(ec2: tuple[Any, Stubber]) -> None:
    service, stub = ec2
    groups = [group(1, rules=True), group(2, rules=False)]
    stub.add_response("describe_security_groups", {"SecurityGroups": groups})
    stub.add_response(
        "revoke_security_group_ingress", {"Return": True}, {"GroupId": "sg-1", "IpPermissions": RULES}
    )
    stub.add_response("delete_security_group", {}, {"GroupId": "sg-1"})
    stub.add_client_error("delete_security_group", "DependencyViolation")
    stub.add_response("describe_security_groups", {"SecurityGroups": groups[1:]})
    stub.add_response("describe_security_groups", {"SecurityGroups": groups[1:]})
    stub.add_response("delete_security_group", {}, {"GroupId": "sg-2"})
    stub.add_response("describe_security_groups", {"SecurityGroups": []})
    names = ["security-group-for-inbound-nfs-d-abc", "security-group-for-outbound-nfs-d-abc"]
    assert function.remove_groups(service, "vpc-1", patient, quiet) == names


def test_nothing_is_done_when_the_stack_is_made() -> None:
    assert function.handler({"domain": "d-abc", "tf": {"action": "create"}}, None) == {"removed": []}
