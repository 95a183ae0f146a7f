"""`trainstack versions`, with AWS and chart repositories that answer from here."""

from pathlib import Path
from typing import Any

import pytest
import requests
from typer.testing import CliRunner

from infra import stackspec
from infra.clouds.aws import login as aws_login
from infra.errors import UserError
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.load import CONFIG
from stacks.clouds.aws.cluster import ADDONS
from tests.trainstack.preflight.asking import Cloud
from trainstack.cli.app import app
from trainstack.cli.versions import show
from trainstack.versions import newest

SHIPPED = CONFIG / "Pulumi.dev-aws.yaml"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_login, "clients", Cloud)
    monkeypatch.setattr(newest, "kubernetes", lambda _: "1.36")
    monkeypatch.setattr(newest, "node_image", lambda *_: "1.35.9-20261101")
    known = {"coredns": "v1.14.2-eksbuild.9", "kube-proxy": "v1.35.3-eksbuild.2"}
    monkeypatch.setattr(newest, "addon", lambda _, name, *__: known.get(name))
    monkeypatch.setattr(newest, "chart", lambda *_: "0.18.2")


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chart repositories answer; AWS is really asked."""
    monkeypatch.setattr(newest, "chart", lambda *_: "99.0.0")


def lines(output: str) -> dict[str, str]:
    return {" ".join(line.split()[:2]): line for line in output.splitlines()}


@pytest.mark.usefixtures("answers")
def test_it_tells_what_is_newer_and_what_taking_it_would_drain() -> None:
    done = CliRunner().invoke(app, ["versions", "-s", "dev-aws"])
    assert done.exit_code == 0, done.output
    said = lines(done.output)
    nodes = "every node of system (2 to 6), a100 (0 to 4), l4 (0 to 8), cpu (0 to 4)"
    assert f"1.35.6-20260714        1.35.9-20261101  drains {nodes}" in said["node image"]
    assert f"drains {nodes}, after the control plane" in said["Kubernetes control"]
    assert "v1.14.2-eksbuild.9  drains nothing" in said["add-on coredns"]
    assert "drains" not in said["add-on kube-proxy"]
    assert (
        "v0.8.1-eksbuild.6" in said["add-on metrics-server"] and "not known" in said["add-on metrics-server"]
    )


@pytest.mark.usefixtures("answers")
def test_what_nobody_read_for_a_version_of_kubernetes_is_the_choice_of_eks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / SHIPPED.name
    path.write_text(
        SHIPPED.read_text().replace("layout:\n", 'layout:\n      kubernetes_version: "1.34"\n', 1)
    )
    show("dev-aws", tmp_path, update=False)
    assert "EKS's choice" in lines(capsys.readouterr().out)["add-on metrics-server"]


@pytest.mark.usefixtures("answers")
def test_update_writes_addons_and_the_image_and_leaves_kubernetes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / SHIPPED.name
    path.write_text(SHIPPED.read_text())
    show("dev-aws", tmp_path, update=True)
    assert "2 written to Pulumi.dev-aws.yaml" in capsys.readouterr().out
    spec = stackspec.load_file("dev-aws", tmp_path).spec
    assert isinstance(spec.on, AwsSpec) and isinstance(spec.layout, ClusterLayout)
    assert spec.on.addon_versions == {"coredns": "v1.14.2-eksbuild.9"}
    assert spec.on.node_image == "1.35.9-20261101"
    assert spec.layout.kubernetes_version == "1.35"


def test_on_gke_there_is_nothing_to_write_and_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def chart(*_: Any) -> str:
        raise AssertionError("a repository was asked")

    monkeypatch.setattr(newest, "chart", chart)
    path = CONFIG / "Pulumi.dev-gcp.yaml"
    before = path.read_bytes()
    done = CliRunner().invoke(app, ["versions", "-s", "dev-gcp", "--update"])
    assert isinstance(done.exception, UserError)
    (problem,) = done.exception.problems
    assert problem.path == "--update" and "GKE" in problem.rule
    assert "layout.kubernetes_version" in problem.fix
    assert path.read_bytes() == before and "written" not in done.output


@pytest.mark.usefixtures("answers")
def test_a_repository_that_does_not_answer_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def chart(*_: Any) -> str:
        raise requests.ConnectionError("no way to the repository")

    monkeypatch.setattr(newest, "chart", chart)
    done = CliRunner().invoke(app, ["versions", "-s", "dev-aws"])
    assert done.exit_code == 2
    assert "not known: no way to the repository" in lines(done.output)["chart kueue"]


@pytest.mark.usefixtures("charts")
def test_without_credentials_charts_are_shown_and_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    output = logged_out()
    assert "not known: Unable to locate credentials" in lines(output)["add-on coredns"]


@pytest.mark.usefixtures("charts")
def test_a_profile_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody-has-it")
    assert "(nobody-has-it) could not be found" in logged_out()


@pytest.mark.usefixtures("charts")
@pytest.mark.parametrize("code", ["ExpiredTokenException", "UnrecognizedClientException"])
def test_credentials_that_aws_refuses(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    assert f"not known: {code}: is invalid" in logged_out(refusing(monkeypatch, code))


@pytest.mark.usefixtures("charts")
def test_a_right_that_is_missing_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, "AccessDeniedException")
    done = CliRunner().invoke(app, ["versions", "-s", "dev-aws"])
    assert done.exit_code == 2 and "99.0.0" in lines(done.output)["chart kueue"]
    assert "AccessDeniedException" in lines(done.output)["Kubernetes control"]


def refusing(monkeypatch: pytest.MonkeyPatch, code: str) -> Cloud:
    """An account that refuses every question of the command."""
    cloud = Cloud()
    cloud.refuses("eks", "describe_cluster_versions", code, "is invalid")
    cloud.refuses("ssm", "get_parameter", code, "is invalid")
    for _ in ADDONS:
        cloud.refuses("eks", "describe_addon_versions", code, "is invalid")
    monkeypatch.setattr(aws_login, "clients", lambda: cloud)
    return cloud


def logged_out(cloud: Cloud | None = None) -> str:
    """What the command shows to one whom AWS does not answer: charts are known, and nothing is written."""
    before = SHIPPED.read_bytes()
    done = CliRunner().invoke(app, ["versions", "-s", "dev-aws", "--update"])
    assert isinstance(done.exception, UserError)
    (problem,) = done.exception.problems
    assert problem.path == "credentials" and "aws sso login" in problem.fix
    assert "99.0.0" in lines(done.output)["chart kueue"]
    assert SHIPPED.read_bytes() == before
    assert cloud is None or cloud.is_exhausted()
    return done.output
