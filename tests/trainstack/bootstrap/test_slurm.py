"""The setup of an account or a project for a stack with Slurm: enough for it, and not for those of others."""

from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.stackspec import load_file
from tests.trainstack.bootstrap.setup import GITHUB, folder, printed
from tests.trainstack.bootstrap.test_aws import ACCOUNT, Account, documents
from trainstack.bootstrap.aws.rights import MOST_CHARACTERS, size
from trainstack.preflight.aws.permissions import STACK_TAG, simulated
from trainstack.preflight.gcp.permissions import permissions

STACK = "large-slurm-aws"
CLUSTER = f"arn:aws:pcs:us-east-1:{ACCOUNT}:cluster/pcs_abc123"
MACHINE = f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/i-0123456789abcdef0"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Account]:
    template = printed(folder(tmp_path_factory.mktemp("slurm"), STACK), *GITHUB)
    return template, Account(template, "us-east-1")


def test_the_deployer_may_do_what_the_preflight_asks_for(made: tuple[str, Account]) -> None:
    _, account = made
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/trainstack-{STACK}-roles"
    keys: dict[str, Any] = {
        STACK_TAG: STACK,
        "iam:PassedToService": "ec2.amazonaws.com",
        "iam:PermissionsBoundary": boundary,
    }
    for arn, actions in simulated(load_file(STACK).spec).items():
        for action in actions:
            if action == "iam:PassRole" and "flow" in arn:
                continue
            assert account.allows(STACK, action, arn, **keys), (action, arn)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("pcs:DeleteCluster", CLUSTER),
        ("pcs:UpdateComputeNodeGroup", f"{CLUSTER}/computenodegroup/pcs_x"),
        ("pcs:TagResource", CLUSTER),
        ("ssm:SendCommand", MACHINE),
    ],
)
def test_what_another_stack_has_is_not_changed(action: str, resource: str, made: tuple[str, Account]) -> None:
    _, account = made
    assert account.allows(STACK, action, resource, **{STACK_TAG: STACK})
    assert not account.allows(STACK, action, resource, **{STACK_TAG: "other"})


def test_secrets_of_clusters_are_not_read(made: tuple[str, Account]) -> None:
    secret = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:pcs!slurm-secret-pcs_abc-AbCdEf"
    assert not made[1].allows(STACK, "secretsmanager:GetSecretValue", secret)


def test_policies_are_of_a_size_that_iam_takes(made: tuple[str, Account]) -> None:
    own = [document for name, document in documents(made[0]) if name.startswith("PolicydeployerDash")]
    assert 1 <= len(own) <= 10
    assert max(size(one["Statement"]) for _, one in documents(made[0])) <= MOST_CHARACTERS


def test_nodes_join_their_cluster_and_read_no_parameters_of_others(made: tuple[str, Account]) -> None:
    (limit,) = (one for name, one in documents(made[0]) if name.endswith("RolesBoundary"))
    allowed = {action for one in limit["Statement"] if one["Effect"] == "Allow" for action in one["Action"]}
    assert {"pcs:RegisterComputeNodeGroupInstance", "ssm:UpdateInstanceInformation"} <= allowed
    everywhere = {
        action for one in limit["Statement"] if one.get("Resource") == ["*"] for action in one["Action"]
    }
    assert not [one for one in everywhere if one.startswith("ssm:GetParameter")]


def test_a_project_gets_the_role_of_cluster_director(tmp_path: Path) -> None:
    script = printed(folder(tmp_path, "large-slurm-gcp"), "--agency-member", "group:deploy@agency.com")
    assert "hypercomputecluster.googleapis.com" in script
    assert all(one in script for one in permissions(load_file("large-slurm-gcp").spec))


def test_a_stack_whose_rights_have_no_list_gets_no_deployer(tmp_path: Path) -> None:
    made = folder(tmp_path, "large-slinky-aws", STACK)
    with pytest.raises(UserError) as error:
        printed(made, *GITHUB)
    assert error.value.codes == (("bootstrap-not-supported", "on.slinky"),)
    assert "large-slinky-aws" not in printed(made, "-s", STACK, *GITHUB)
