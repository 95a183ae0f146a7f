"""Rendered pipelines log in with tokens that the printed trust accepts."""

import json
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
