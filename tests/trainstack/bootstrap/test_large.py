"""The setup for a large stack: one deployer and one state for it and its clusters, in several regions."""

from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from infra.stackspec import load_file
from infra.stackspec.several.derived import of_stack
from tests.trainstack.bootstrap.setup import AGENCY, folder, printed
from tests.trainstack.bootstrap.test_aws import ACCOUNT, Account, documents
from trainstack.bootstrap.aws.rights import MOST_CHARACTERS, size
from trainstack.bootstrap.stacks import place
from trainstack.preflight.aws.permissions import GROUP_TAG, STACK_TAG, rows, simulated
from trainstack.preflight.gcp.permissions import permissions

STACK = "large-aws"
STACKS = (STACK, f"{STACK}-use1", f"{STACK}-usw2")
MIXED = ("large-mixed", "large-mixed-use1", "large-mixed-usc1")
MEMBER = ("--agency-member", "group:deploy@agency.com")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    return printed(folder(tmp_path_factory.mktemp("large"), *STACKS), *AGENCY)


@pytest.fixture(scope="module")
def made(template: str) -> Account:
    return Account(template, "us-east-1")


@pytest.mark.parametrize("name", STACKS)
def test_one_deployer_may_do_what_every_stack_needs(name: str, made: Account) -> None:
    """`up` of a large stack deploys its clusters with the same credentials."""
    spec = of_stack(load_file(name).spec)
    keys: dict[str, Any] = {
        STACK_TAG: name,
        GROUP_TAG.format(name): "owned",
        "iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/trainstack-{STACK}-roles",
    }
    for arn, actions in simulated(spec).items():
        for action in actions:
            if action == "iam:PassRole":
                continue  # by service, in the tests of one stack
            service = arn.partition("aws-service-role/")[2].partition("/")[0]
            linked = {"iam:AWSServiceName": service} if service else {}
            assert made.allows(STACK, action, arn, **keys, **linked), (action, arn)


def test_the_manager_alone_connects_networks(made: Account) -> None:
    manager, cluster = (of_stack(load_file(one).spec) for one in STACKS[:2])
    types = rows(manager).keys() - rows(cluster).keys()
    accepter = "aws:ec2/vpcPeeringConnectionAccepter:VpcPeeringConnectionAccepter"
    assert types == {"aws:ec2/vpcPeeringConnection:VpcPeeringConnection", accepter}
    # A manager in another account accepts, and makes routes, as the deployer of the cluster.
    assert rows(cluster, guest=True).keys() - rows(cluster).keys() == {accepter}
    peering = {f"ec2:{verb}VpcPeeringConnection" for verb in ("Create", "Accept", "Delete")}
    assert all(made.allows(STACK, one, "*") for one in (*peering, "ec2:DescribeVpcPeeringConnections"))


def test_the_deployer_has_the_states_of_all_and_of_no_other(made: Account) -> None:
    def writes(stack: str) -> bool:
        state = f"arn:aws:s3:::{made.bucket}/.pulumi/stacks/acme/{stack}.json"
        return made.allows(STACK, "s3:PutObject", state)

    assert all(map(writes, STACKS))
    assert not writes("other") and not writes(f"{STACK}-x")


def test_there_is_one_deployer_one_boundary_and_one_budget(template: str, made: Account) -> None:
    assert {*made.roles} == {f"deployer-{STACK}"}
    assert len([name for name, _ in documents(template) if name.endswith("RolesBoundary")]) == 1
    assert made.budget["BudgetLimit"]["Amount"] == 400000
    assert max(size(one["Statement"]) for _, one in documents(template)) <= MOST_CHARACTERS


def test_the_state_is_in_the_region_of_the_large_stack(tmp_path: Path) -> None:
    assert place(folder(tmp_path, *STACKS), ()).region == "us-east-1"


def test_stacks_of_several_regions_without_a_large_one_are_refused(tmp_path: Path) -> None:
    made = folder(tmp_path, "dev-aws")
    other = folder(tmp_path, "small-aws", change=("us-east-1", "us-west-2"))
    assert made == other
    with pytest.raises(UserError) as error:
        place(made, ())
    assert "bootstrap-several-regions" in {code for code, _ in error.value.codes}


def test_on_two_clouds_the_state_is_with_the_manager(tmp_path: Path) -> None:
    made = folder(tmp_path, *MIXED)
    home = Account(printed(made, "-s", "large-mixed", *AGENCY), "us-east-1")
    for stack in MIXED:
        state = f"arn:aws:s3:::{home.bucket}/.pulumi/stacks/acme/{stack}.json"
        assert home.allows("large-mixed", "s3:PutObject", state), stack
    script = printed(made, "-s", "large-mixed-usc1", *MEMBER)
    spec = load_file("large-mixed-usc1").spec
    assert all(one in script for one in permissions(spec, federated=True))
    assert "deployer-large-mixed" in script and "sts.googleapis.com" in script


def test_a_project_has_one_deployer_for_clusters_in_two_regions(tmp_path: Path) -> None:
    stacks = ("large-gcp", "large-gcp-usc1", "large-gcp-use4")
    script = printed(folder(tmp_path, *stacks), *MEMBER)
    created = [line for line in script.splitlines() if "service-accounts create" in line]
    assert len(created) == 1 and "deployer-large-gcp" in created[0]
    # Conditions have at most twelve operators.
    conditions = [line for line in script.splitlines() if "expression=" in line]
    assert conditions and all(line.count(" || ") <= 12 for line in conditions)
    assert all(any(f"/{stack}." in line for line in conditions) for stack in stacks)
