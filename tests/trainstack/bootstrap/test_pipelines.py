"""Rendered pipelines log in with tokens that the printed trust accepts."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.trainstack.bootstrap.setup import GITHUB, GITHUB_IDS, GITLAB, printed
from tests.trainstack.stamp.test_client import choices
from trainstack.stamp import client
from trainstack.stamp.folder import write

STACKS = ("acme-dev", "acme-prod")
DEPLOY, CI = ".github/workflows/trainstack.yml", ".gitlab-ci.yml"
NIGHTLY = ".github/workflows/nightly.yml"
OTHERS = {"aws": ("123456789012", "444455556666"), "gcp": ("example-ml-jobs", "acme-ml-prod")}
"""Accounts or projects: that of every stack of a new client, and another one."""
ABOUT_PROGRAM = {"TRAINSTACK_PACKAGE", "TRAINSTACK_RUNNER", "TRAINSTACK_TOKEN", "TRAINSTACK_COMMENT_TOKEN"}
ACTION_AUDIENCE = "sts.amazonaws.com"
"""Of aws-actions/configure-aws-credentials, unless its input `audience` is set."""


@cache
def texts(cloud: str) -> Mapping[str, str]:
    return client.render(choices("small", cloud)).texts


def pipeline(cloud: str, file: str) -> Any:
    return YAML(typ="safe").load(texts(cloud)[file])


def setup(cloud: str, tmp_path: Path, *words: str) -> dict[str, Any]:
    write(texts(cloud), tmp_path / "acme")
    return dict(json.loads(printed(tmp_path / "acme", *words, "--form", "terraform")))


def environments(cloud: str, file: str) -> Iterator[str]:
    """Environments of the jobs that deploy."""
    found = pipeline(cloud, file)
    for job in (found["jobs"] if file == DEPLOY else found).values():
        if isinstance(job, dict) and "environment" in job:
            yield job["environment"] if isinstance(job["environment"], str) else job["environment"]["name"]


def trusted(document: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Claims that a role of AWS asks for, without the issuer."""
    (statement,) = json.loads(document["resource"]["aws_iam_role"][role]["assume_role_policy"])["Statement"]
    return {
        key.rpartition(":")[2]: value
        for test in statement["Condition"].values()
        for key, value in test.items()
    }


def test_tokens_of_github_are_those_that_the_roles_ask_for(tmp_path: Path) -> None:
    document = setup("aws", tmp_path, *GITHUB)
    subjects = [f"repo:acme/stacks:environment:{one}" for one in environments("aws", DEPLOY)]
    claims = [trusted(document, f"deployer-{one}") for one in STACKS]
    assert claims == [{"aud": ACTION_AUDIENCE, "sub": one} for one in subjects]
    assert "audience" not in texts("aws")[".github/actions/trainstack/action.yml"]
    (provider,) = document["resource"]["aws_iam_openid_connect_provider"].values()
    assert provider["client_id_list"] == [ACTION_AUDIENCE]


@pytest.mark.parametrize("words", [GITHUB, GITHUB_IDS], ids=" ".join)
def test_previews_and_nightly_checks_of_github_have_identities(
    words: tuple[str, str], tmp_path: Path
) -> None:
    """Jobs without an environment: their subject is the pull request, or the branch."""
    document = setup("aws", tmp_path, *words)
    main = f"repo:{words[1]}:ref:refs/heads/main"
    preview = trusted(document, "trainstack-acme-preview")
    assert preview == {"aud": ACTION_AUDIENCE, "sub": [f"repo:{words[1]}:pull_request", main]}
    assert trusted(document, "trainstack-acme-nightly") == {"aud": ACTION_AUDIENCE, "sub": main}
    on = pipeline("aws", DEPLOY)["on"]
    assert (on["push"]["branches"], "pull_request" in on) == (["main"], True)


def test_tokens_of_gitlab_are_those_that_the_roles_ask_for(tmp_path: Path) -> None:
    document = setup("aws", tmp_path, *GITLAB)
    audience = pipeline("aws", CI)[".trainstack"]["id_tokens"]["TRAINSTACK_TOKEN"]["aud"]
    (provider,) = document["resource"]["aws_iam_openid_connect_provider"].values()
    assert provider["client_id_list"] == [audience]
    assert [trusted(document, f"deployer-{one}")["aud"] for one in STACKS] == [audience, audience]


@pytest.mark.parametrize("file", [DEPLOY, CI])
def test_environments_are_named_as_the_stacks(file: str) -> None:
    assert tuple(environments("aws", file)) == tuple(environments("gcp", file)) == STACKS


def test_google_cloud_accepts_the_subjects_of_the_environments(tmp_path: Path) -> None:
    resources = setup("gcp", tmp_path, *GITHUB)["resource"]
    (provider,) = resources["google_iam_workload_identity_pool_provider"].values()
    for stack in environments("gcp", DEPLOY):
        subject = f"repo:acme/stacks:environment:{stack}"
        assert f"'{subject}'" in provider["attribute_condition"]
        member = resources["google_service_account_iam_member"][f"deployer-{stack}"]["member"]
        assert member.endswith(f"/subject/{subject}")


def variables(made: Path, stack: str, words: tuple[str, ...]) -> dict[str, str]:
    """Variables of pipelines in the notes of one place, by name."""
    notes = json.loads(printed(made, "-s", stack, *words, "--format", "json"))["notes"]
    found = [
        re.match(r"Variable of the (?:repository|environment [\w-]+): (\w+)=(\S+)", one) for one in notes
    ]
    return {one[1]: one[2] for one in found if one}


@pytest.mark.parametrize(("files", "words"), [((DEPLOY, NIGHTLY), GITHUB), ((CI,), GITLAB)], ids=["gh", "gl"])
@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_pipelines_read_the_variables_that_are_printed_also_of_an_account_per_environment(
    cloud: str, files: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    made = tmp_path / "acme"
    write(texts(cloud), made)
    shared = variables(made, "acme-dev", words)
    read = set(
        re.findall(r"TRAINSTACK_[A-Z_]+|PULUMI_BACKEND_URL\w*", "".join(texts(cloud)[one] for one in files))
    )
    defaults = {re.sub("_ACME_(DEV|PROD)$", "", one) for one in shared} - {"TRAINSTACK_DEPLOY_IDENTITY"}
    assert shared.keys() == read - defaults - ABOUT_PROGRAM
    prod = made / "Pulumi.acme-prod.yaml"
    prod.write_text(prod.read_text().replace(*OTHERS[cloud]))
    apart = [variables(made, stack, words) for stack in STACKS]
    repeated = apart[0].keys() & apart[1].keys()
    assert repeated == {"TRAINSTACK_DEPLOY_IDENTITY"}, "of environments, which have their own"
    assert apart[0].keys() | apart[1].keys() == shared.keys()
    for place, found in zip(OTHERS[cloud], apart, strict=True):
        of_place = [value for name, value in found.items() if "PROVIDER" not in name]
        assert [value for value in of_place if place not in value] == []
