"""The setup for a large stack with a cluster in an account or a project of its own (docs/adr/0103)."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.aws.clusters.roles import AwsDispatcherRole, AwsManagerLogin
from infra.naming import login_role
from infra.stackspec.document import read
from rehearsal.dataplane.aws.iam_policies import AccessCheck, permits
from tests.components.recorder import deploy
from tests.trainstack.bootstrap.setup import AGENCY, folder, printed
from tests.trainstack.bootstrap.test_aws import ACCOUNT, Account, documents, of_type
from trainstack.bootstrap.aws.rights import MOST_CHARACTERS, size

GOOGLE = ("large-gcp", "large-gcp-usc1", "large-gcp-use4")
PROJECT = "example-ml-east"
MEMBER = ("--agency-member", "group:deploy@agency.com")
PIPELINE = ("--github", "acme@123/stacks@456")
STACK = "large-aws"
STACKS = (STACK, f"{STACK}-use1", f"{STACK}-usw2")
OTHER = "210987654321"
DEPLOYER = f"deployer-{STACK}"
ON_AWS: dict[str, Any] = {
    "account_id": OTHER,
    "assume_role": {"role_arn": f"arn:aws:iam::{OTHER}:role/{DEPLOYER}", "external_id": "ml-1"},
}


def apart(tmp_path: Path, stacks: tuple[str, ...], given: dict[str, Any]) -> Path:
    """A client's folder, where the last cluster of its large stack has these settings."""
    made = folder(tmp_path, *stacks)
    file = made / f"Pulumi.{stacks[0]}.yaml"
    content: Any = read(file, file.name)
    clusters = content["config"]["trainstack:spec"]["layout"]["clusters"]
    (cluster,) = [one for one in clusters if stacks[-1].endswith(f"-{one['name']}")]
    cluster.update(given)
    file.write_text(json.dumps(content))
    return made


def on_aws(tmp_path: Path, **changes: Any) -> Path:
    """A folder with a cluster in another AWS account."""
    return apart(tmp_path, STACKS, {"on": ON_AWS | changes, "monthly_usd": 50000})


def roles_boundary(template: str) -> dict[str, Any]:
    """The only boundary of roles in a template."""
    (found,) = (one for name, one in documents(template) if name.endswith("RolesBoundary"))
    return found


def dispatcher(roles: list[str]) -> dict[str, Any]:
    """The policy of the role of a manager's dispatcher."""
    arn = f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/{STACK}"
    recorder, _ = deploy(
        lambda: {
            "role": AwsDispatcherRole(
                "it",
                {
                    "stack": STACK, "cluster_name": STACK, "cluster_arn": arn, "namespace": "a",
                    "service_account": "b", "roles": roles,
                },
            ).role_arn
        }
    )  # fmt: skip
    return dict(json.loads(recorder.one("aws:iam/rolePolicy:RolePolicy").properties["policy"]))


def test_the_dispatcher_logs_in_to_each_cluster_with_the_tags_of_its_session(tmp_path: Path) -> None:
    boundary = roles_boundary(printed(on_aws(tmp_path), "-s", STACK, *AGENCY))
    places = {f"{STACK}-use1": ACCOUNT, f"{STACK}-usw2": OTHER}
    wanted = [f"arn:aws:iam::{place}:role/{login_role(stack)}" for stack, place in places.items()]
    policy = dispatcher(wanted)
    for action in ("sts:AssumeRole", "sts:TagSession"):
        for role in wanted:
            assert permits([policy], AccessCheck(action, role, {})), (action, role)
            assert permits([boundary], AccessCheck(action, role, {})), (action, role)
        for role in (
            f"{ACCOUNT}:role/other",
            f"{OTHER}:role/{DEPLOYER}",
            f"{OTHER}:role/{STACK}-use1-manager",
        ):
            assert not permits([boundary], AccessCheck(action, f"arn:aws:iam::{role}", {})), (action, role)
    assert size(boundary["Statement"]) <= MOST_CHARACTERS


def test_the_role_of_a_cluster_has_the_name_that_the_boundary_allows() -> None:
    recorder, _ = deploy(
        lambda: {
            "role": AwsManagerLogin(
                "it",
                {
                    "stack": f"{STACK}-usw2", "manager": STACK, "manager_account": ACCOUNT,
                    "cluster_name": "a", "security_group_id": pulumi.Output.from_input("sg-0"),
                    "manager_cidr": "10.0.0.0/16", "group": "g",
                },
            ).role_arn
        }
    )  # fmt: skip
    assert recorder.one("aws:iam/role:Role").properties["name"] == login_role(f"{STACK}-usw2")


def test_roles_of_a_cluster_in_its_own_account_log_in_to_no_other(tmp_path: Path) -> None:
    boundary = roles_boundary(printed(on_aws(tmp_path), "-s", f"{STACK}-usw2", *AGENCY))
    for role in (login_role(f"{STACK}-use1"), f"{STACK}-dispatcher"):
        assert not permits(
            [boundary], AccessCheck("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/{role}", {})
        )


def notes(made: Path, *words: str) -> str:
    """Notes of the command."""
    return "\n".join(json.loads(printed(made, *words, "--format", "json"))["notes"])


@pytest.mark.parametrize("trust", [AGENCY, PIPELINE], ids=["agency", "pipeline"])
def test_the_deployer_of_a_cluster_is_assumed_by_that_of_its_manager_alone(
    trust: tuple[str, ...], tmp_path: Path
) -> None:
    made = on_aws(tmp_path)
    own, role = f"arn:aws:iam::{ACCOUNT}:role/{DEPLOYER}", ON_AWS["assume_role"]
    (guest,) = (
        one
        for one in of_type(printed(made, "-s", f"{STACK}-usw2", *trust), "IAM::Role")
        if one["RoleName"] == DEPLOYER
    )
    (statement,) = guest["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"AWS": own} and statement["Action"] == "sts:AssumeRole"
    assert statement["Condition"] == {"StringEquals": {"sts:ExternalId": "ml-1"}}
    manager = Account(printed(made, "-s", STACK, *trust), "us-east-1")
    assert manager.allows(STACK, "sts:AssumeRole", role["role_arn"])
    assert not manager.allows(STACK, "sts:AssumeRole", f"arn:aws:iam::{OTHER}:role/administrator")
    assert not manager.allows(STACK, "sts:AssumeRole", own)


def test_notes_of_a_cluster_in_its_own_account_name_the_deployer_of_its_manager(tmp_path: Path) -> None:
    named = {"role_arn": f"arn:aws:iam::{OTHER}:role/deploys"}
    found = notes(on_aws(tmp_path, assume_role=named), "-s", f"{STACK}-usw2", *PIPELINE)
    assert f"arn:aws:iam::{ACCOUNT}:role/{DEPLOYER}" in found
    (line,) = [one for one in found.splitlines() if f"arn:aws:iam::{OTHER}:role/{DEPLOYER}" in one]
    assert "on.assume_role.role_arn" in line and f"{STACK}-usw2" in line
    assert "TRAINSTACK_DEPLOY_IDENTITY" not in found
    right = notes(on_aws(tmp_path / "right"), "-s", f"{STACK}-usw2", *PIPELINE)
    assert "on.assume_role" not in right


@pytest.mark.parametrize("trust", [MEMBER, PIPELINE], ids=["agency", "pipeline"])
@pytest.mark.parametrize("form", ["gcloud", "terraform"])
def test_the_account_of_a_cluster_is_used_by_that_of_its_manager_alone(
    form: str, trust: tuple[str, ...], tmp_path: Path
) -> None:
    email = f"deployer-large-gcp@{PROJECT}.iam.gserviceaccount.com"
    made = apart(tmp_path, GOOGLE, {"on": {"project": PROJECT, "impersonate": email}})
    script = printed(made, "-s", GOOGLE[2], *trust, "--form", form)
    user = "serviceAccount:deployer-large-gcp@example-ml-dev.iam.gserviceaccount.com"
    lines = [one for one in script.splitlines() if user in one]
    assert len(lines) == 1 and "group:deploy@agency.com" not in script
    assert "environment:large-gcp" not in script
    # A manager on the same cloud logs in without a pool of identities.
    assert "workloadIdentityPools.create" not in script
    assert "on.impersonate" not in notes(made, "-s", GOOGLE[2], *trust)
