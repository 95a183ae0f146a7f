"""Identities that may deploy, and stacks that are set up together."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from tests.trainstack.bootstrap.setup import AGENCY, GITHUB, GITHUB_IDS, GITLAB, ROLE, folder, printed
from tests.trainstack.cli.command import run_json

IN_VIRGINIA = ("us-west-2", "us-east-1")


def refused(made: Path, *words: str) -> list[str]:
    with pytest.raises(UserError) as error:
        printed(made, *words)
    return [problem.code for problem in error.value.problems]


@pytest.mark.parametrize(
    "words",
    [
        ("--github", "acme/*"), ("--github", "acme"), ("--github", "acme/stacks:environment:prod"),
        ("--github", "acme@123/stacks"), ("--github", "acme/stacks@456"), ("--github", "acme@*/stacks@456"),
        ("--github", "acme@1/stacks@0"), ("--gitlab", "acme@1/stacks@2"),
        ("--github", "acme/stacks", "--branch", "dev"),
        ("--github", "acme/stacks", "--external-id", "acme-2041-77"),
        ("--gitlab", "acme/*"), ("--gitlab", "stacks"), ("--gitlab", "a/b", "--branch", "*"),
        ("--agency-role", "arn:aws:iam::111122223333:root", "--external-id", "acme-2041-77"),
        ("--agency-role", "*", "--external-id", "acme-2041-77"),
        ("--agency-role", ROLE), ("--agency-role", ROLE, "--external-id", "short"),
        ("--agency-role", f"{ROLE}*", "--external-id", "acme-2041-77"),
        ("--agency-member", "allAuthenticatedUsers"), ("--agency-member", "domain:agency.com"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_patterns_and_incomplete_identities_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    assert refused(folder(tmp_path, "small-aws"), *words) == ["bootstrap-trust-invalid"]


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws", "small-gcp")
    assert refused(tmp_path / "nosuch") == ["bootstrap-trust-not-chosen", "bootstrap-no-stacks"]
    assert refused(made, "--github", "acme", "-s", "a", "-s", "b") == [
        "bootstrap-trust-invalid", "stack-file-missing", "stack-file-missing"
    ]  # fmt: skip
    assert refused(made, "--agency-role", "*", "--external-id", "1") == [
        "bootstrap-trust-invalid", "bootstrap-trust-invalid", "bootstrap-several-places"
    ]  # fmt: skip


def test_the_output_as_json_has_the_file_and_the_notes(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws")
    code, found = run_json("bootstrap", str(made), *GITHUB)
    assert code == 0 and (found["cloud"], found["stacks"], found["form"]) == (
        "aws", ["small-aws"], "cloudformation"
    )  # fmt: skip
    assert json.loads(found["text"])["Resources"] and any("administrator" in note for note in found["notes"])


@pytest.mark.parametrize("words", [(), (*AGENCY, *GITHUB), (*GITHUB, *GITLAB)], ids=len)
def test_one_identity_is_chosen(words: tuple[str, ...], tmp_path: Path) -> None:
    assert refused(folder(tmp_path, "small-aws"), *words) == ["bootstrap-trust-not-chosen"]


@pytest.mark.parametrize(
    ("stack", "words", "code"),
    [
        ("small-aws", ("--agency-member", "group:ops@agency.com"), "bootstrap-trust-of-other-cloud"),
        ("small-gcp", AGENCY, "bootstrap-trust-of-other-cloud"),
        ("small-aws", (*GITHUB, "--form", "gcloud"), "bootstrap-form-of-other-cloud"),
        ("small-gcp", (*GITHUB, "--form", "cloudformation"), "bootstrap-form-of-other-cloud"),
        ("small-aws", (*GITHUB, "-s", "prod"), "stack-file-missing"),
    ],
)
def test_what_does_not_fit_the_cloud_is_refused(
    stack: str, words: tuple[str, ...], code: str, tmp_path: Path
) -> None:
    assert refused(folder(tmp_path, stack), *words) == [code]


def test_stacks_of_several_places_are_set_up_one_place_at_a_time(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws", "small-gcp")
    assert refused(made, *GITHUB) == ["bootstrap-several-places"]
    assert "small-gcp" not in printed(made, *GITHUB, "-s", "small-aws")
    assert refused(tmp_path, *GITHUB) == ["bootstrap-no-stacks"]


def test_a_chosen_stack_chooses_its_place_with_all_stacks_of_it(tmp_path: Path) -> None:
    """A template without a stack would delete the deployer of that stack where it is applied."""
    made = folder(tmp_path, "small-aws", "dev-aws", "small-gcp", change=IN_VIRGINIA)
    everything = printed(folder(tmp_path / "same", "small-aws", "dev-aws", change=IN_VIRGINIA), *GITHUB)
    assert everything == printed(made, *GITHUB, "-s", "small-aws") == printed(made, *GITHUB, "-s", "dev-aws")
    (made / "Pulumi.dev-aws.yaml").write_text("config: {}\n")
    assert refused(made, *GITHUB, "-s", "small-aws") != [], "its deployer would be left out"


def test_stacks_of_an_account_are_in_one_region(tmp_path: Path) -> None:
    """Names of the bucket, of boundaries and of readers have no region."""
    made = folder(tmp_path, "small-aws", "dev-aws")
    assert refused(made, *GITHUB) == ["bootstrap-several-regions"]
    folder(tmp_path, "small-gcp")
    assert refused(made, *GITHUB, "-s", "small-aws") == ["bootstrap-several-regions"]
    assert "small-gcp" in printed(made, *GITHUB, "-s", "small-gcp")


@pytest.mark.parametrize("words", [(), ("-s", "small-aws")], ids=len)
def test_no_stack_of_an_account_begins_with_the_name_of_another(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Patterns such as small-aws-* name resources of both."""
    made = folder(tmp_path, "small-aws")
    (made / "Pulumi.small-aws-eu.yaml").write_text((made / "Pulumi.small-aws.yaml").read_text())
    assert refused(made, *GITHUB, *words) == ["bootstrap-names-overlap"]
    (made / "Pulumi.small-aws-eu.yaml").rename(made / "Pulumi.small-aws2.yaml")
    assert "deployer-small-aws2" in printed(made, *GITHUB, *words)


@pytest.mark.parametrize("name", ["small-aws", "small-aws-eu", "small"])
def test_no_stack_of_another_client_in_the_account_has_or_continues_a_name(name: str, tmp_path: Path) -> None:
    made, other = folder(tmp_path, "small-aws"), tmp_path / "beta"
    file = (made / "Pulumi.small-aws.yaml").read_text()
    (tmp_path / "broken").mkdir()
    other.mkdir()
    for one in (other, tmp_path / "broken"):
        (one / "Pulumi.yaml").write_text(f"name: {one.name}\nruntime: python\nmain: .trainstack/program\n")
        (one / f"Pulumi.{name}.yaml").write_text(file if one == other else "config: [")
    assert refused(made, *GITHUB) == ["bootstrap-names-overlap"]
    (other / f"Pulumi.{name}.yaml").write_text(file.replace("123456789012", "210987654321"))
    assert "deployer-small-aws" in printed(made, *GITHUB)
    (other / f"Pulumi.{name}.yaml").write_text(file)
    (other / "Pulumi.yaml").write_text("name: acme\nruntime: python\nmain: .trainstack/program\n")
    assert "deployer-small-aws" in printed(made, *GITHUB), "a second copy of the client's folder"


@pytest.mark.parametrize("name", ["Pulumi.yaml", "Pulumi.beta-dev.yaml"])
def test_a_file_of_another_client_that_is_not_read_is_named(name: str, tmp_path: Path) -> None:
    """Its stack may be in the account, with a name that begins as one of these."""
    made, other = folder(tmp_path, "small-aws"), tmp_path / "beta"
    other.mkdir()
    project = "name: beta\nruntime: python\nmain: .trainstack/program\n"
    (other / "Pulumi.yaml").write_text(project)
    shutil.copy(made / "Pulumi.small-aws.yaml", other / "Pulumi.beta-dev.yaml")

    def unread() -> list[str]:
        notes = json.loads(printed(made, *GITHUB, "--format", "json"))["notes"]
        return [note for note in notes if str(other / name) in note]

    file = (other / "Pulumi.beta-dev.yaml").read_text()
    (other / "Pulumi.beta-dev.yaml").write_text(file.replace("123456789012", "210987654321"))
    assert unread() == []
    (other / name).write_text(f"{project}other: [")
    assert len(unread()) == 1


@pytest.mark.parametrize("name", ["trainstack-acme", "deployer-y", "trainstack", "deployer"])
def test_no_stack_has_the_name_of_a_deployer_or_of_a_state(name: str, tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws")
    (made / "Pulumi.small-aws.yaml").rename(made / f"Pulumi.{name}.yaml")
    assert refused(made, *GITHUB) == ["bootstrap-name-reserved"]


def test_names_that_differ_in_a_dash_alone_have_a_deployer_each(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws")
    (made / "Pulumi.small-aws.yaml").rename(made / "Pulumi.acme2b.yaml")
    (made / "Pulumi.acme-2b.yaml").write_text((made / "Pulumi.acme2b.yaml").read_text())
    resources = json.loads(printed(made, *GITHUB))["Resources"].values()
    roles = {one["Properties"]["RoleName"] for one in resources if one["Type"] == "AWS::IAM::Role"}
    assert {"deployer-acme2b", "deployer-acme-2b"} < roles


def trust(made: Path, *words: str) -> dict[str, Any]:
    (role,) = (
        one["Properties"]
        for one in json.loads(printed(made, *words))["Resources"].values()
        if one["Type"] == "AWS::IAM::Role" and one["Properties"]["RoleName"].startswith("deployer-")
    )
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    return dict(statement)


def test_an_identity_is_pinned_to_one_role_one_environment_or_one_branch(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws")
    assert trust(made, *AGENCY)["Condition"] == {"StringEquals": {"sts:ExternalId": "acme-2041-77"}}
    github = trust(made, *GITHUB)["Condition"]
    host = "token.actions.githubusercontent.com"
    subject = "repo:acme/stacks:environment:small-aws"
    assert github == {"StringEquals": {f"{host}:aud": "sts.amazonaws.com", f"{host}:sub": subject}}
    subject = "repo:acme@123/stacks@456:environment:small-aws"
    github = trust(made, *GITHUB_IDS)["Condition"]
    assert github == {"StringEquals": {f"{host}:aud": "sts.amazonaws.com", f"{host}:sub": subject}}
    gitlab = trust(made, *GITLAB)["Condition"]
    subject = "project_path:acme/ml/stacks:ref_type:branch:ref:main"
    assert gitlab == {"StringEquals": {"gitlab.com:aud": "https://gitlab.com", "gitlab.com:sub": subject}}
