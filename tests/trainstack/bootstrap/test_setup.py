"""The setup that a client's folder implies: repository, branch and backend."""

import json
from pathlib import Path

import pytest

from trainstack.bootstrap.setup import setup_of
from trainstack.bootstrap.trust import GITHUB, GITLAB, Pipeline

IDS = Pipeline(GITHUB, "acme@123/stacks@456")
GIT, LAB = Pipeline(GITHUB, "acme/stacks"), Pipeline(GITLAB, "acme/ml/stacks")


def client(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: acme\nruntime: python\n")
    for name in (".github/workflows/trainstack.yml", ".gitlab-ci.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("remote", "pipeline"),
    [
        ("git@github.com:acme/stacks.git", GIT),
        ("https://github.com/acme/stacks", GIT),
        ("https://user@github.com/acme/stacks.git", GIT),
        ("ssh://git@gitlab.com/acme/ml/stacks.git", LAB),
        ("https://gitlab.com/acme/ml/stacks/", LAB),
        ("https://git.acme.com/acme/stacks", None),
        ("", None),
    ],
)
def test_the_repository_is_the_origin_of_the_folder(
    remote: str, pipeline: Pipeline | None, tmp_path: Path
) -> None:
    found = setup_of(client(tmp_path), {}, lambda _: remote, lambda _: "")
    assert (found.client, found.pipeline, found.backend) == ("acme", pipeline, "")


@pytest.mark.parametrize(
    ("prefix", "pipeline", "known"),
    [
        ("repo:acme/stacks\n", GIT, True),
        ("repo:acme@123/stacks@456\n", IDS, True),
        ("repository_owner:acme", GIT, False),
        ("", GIT, False),
    ],
)
def test_the_form_of_subjects_is_asked_of_github(
    prefix: str, pipeline: Pipeline, known: bool, tmp_path: Path
) -> None:
    remote = "git@github.com:acme/stacks.git"
    found = setup_of(client(tmp_path), {}, lambda _: remote, lambda _: prefix)
    assert (found.pipeline, found.form_known) == (pipeline, known)
    assert setup_of(client(tmp_path), {}, lambda _: "git@gitlab.com:acme/ml/stacks.git").form_known


@pytest.mark.parametrize(
    ("trusted", "ids", "pipeline"),
    [
        ("repo:acme/stacks:environment:prod", "", GIT),
        ("repo:acme@123/stacks@456:environment:prod", "", IDS),
        ("repo:acme@123/stacks@456:environment:prod", "123", IDS),
        ("repo:acme@9/stacks@456:environment:prod", "123", IDS),
        ("repo:evil@123/stacks@456:environment:prod", "123", GIT),
    ],
)
def test_of_an_unknown_form_the_trusted_one_is_taken_with_the_ids_of_the_pipeline(
    trusted: str, ids: str, pipeline: Pipeline, tmp_path: Path
) -> None:
    shell = {"GITHUB_REPOSITORY": "acme/stacks"}
    if ids:
        shell |= {"GITHUB_REPOSITORY_OWNER_ID": ids, "GITHUB_REPOSITORY_ID": "456"}
    found = setup_of(client(tmp_path), shell, lambda _: "", lambda _: "")
    assert (found.form_known, found.trusted_as([trusted])) == (False, pipeline)


def test_a_pipeline_names_its_repository_itself(tmp_path: Path) -> None:
    shell = {"CI_PROJECT_PATH": "acme/ml/stacks", "CI_SERVER_URL": GITLAB, "CI_DEFAULT_BRANCH": "trunk"}
    assert setup_of(client(tmp_path), shell, lambda _: "").pipeline == Pipeline(
        GITLAB, "acme/ml/stacks", "trunk"
    )
    assert (
        setup_of(client(tmp_path), {"GITHUB_REPOSITORY": "acme/stacks"}, lambda _: "", lambda _: "").pipeline
        == GIT
    )


def test_the_backend_is_that_of_the_shell_or_of_the_last_login(tmp_path: Path) -> None:
    folder = client(tmp_path)
    (tmp_path / "credentials.json").write_text(json.dumps({"current": "s3://state?region=us-east-1"}))
    found = setup_of(folder, {"PULUMI_HOME": str(tmp_path)}, lambda _: "")
    assert found.bucket("s3", "default") == "state"
    assert found.bucket("gs", "default") == "default"
    chosen = {"PULUMI_HOME": str(tmp_path), "PULUMI_BACKEND_URL": "gs://acme/stacks"}
    assert setup_of(folder, chosen, lambda _: "").bucket("gs", "default") == "acme"
