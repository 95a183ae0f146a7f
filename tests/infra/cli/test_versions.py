"""`trainstack versions`, with AWS and chart repositories that answer from here."""

from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from botocore.exceptions import NoCredentialsError
from typer.testing import CliRunner

from infra import stackspec
from infra.cli.app import app
from infra.cli.versions import show
from infra.errors import UserError
from infra.releases import newest
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout
from infra.stackspec.load import CONFIG

SHIPPED = CONFIG / "Pulumi.dev-aws.yaml"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boto3, "client", lambda *_, **__: object())
    monkeypatch.setattr(newest, "kubernetes", lambda _: "1.36")
    monkeypatch.setattr(newest, "node_image", lambda *_: "1.35.9-20261101")
    known = {"coredns": "v1.14.2-eksbuild.9", "kube-proxy": "v1.35.3-eksbuild.2"}
    monkeypatch.setattr(newest, "addon", lambda _, name, *__: known.get(name))

    def chart(*_: Any) -> str:
        raise requests.ConnectionError("no way to the repository")

    monkeypatch.setattr(newest, "chart", chart)


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
    assert "EKS's choice" in said["add-on metrics-server"] and "not known" in said["add-on metrics-server"]
    assert "not known: no way to the repository" in said["chart kueue"]


@pytest.mark.usefixtures("answers")
def test_update_writes_addons_and_the_image_and_leaves_kubernetes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / SHIPPED.name
    path.write_text(SHIPPED.read_text())
    show("dev-aws", tmp_path, update=True)
    assert "2 written to Pulumi.dev-aws.yaml" in capsys.readouterr().out
    spec = stackspec.load_file("dev-aws", tmp_path).spec
    assert isinstance(spec.on, AwsSpec) and isinstance(spec.layout, MediumLayout)
    assert spec.on.addon_versions == {"coredns": "v1.14.2-eksbuild.9"}
    assert spec.on.node_image == "1.35.9-20261101"
    assert spec.layout.kubernetes_version == "1.35"


def test_without_credentials_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> str:
        raise NoCredentialsError

    monkeypatch.setattr(boto3, "client", lambda *_, **__: object())
    for name in ("kubernetes", "node_image", "addon"):
        monkeypatch.setattr(newest, name, none)
    done = CliRunner().invoke(app, ["versions", "-s", "dev-aws"])
    assert isinstance(done.exception, UserError)
    assert "credentials" in str(done.exception) and "aws sso login" in str(done.exception)
