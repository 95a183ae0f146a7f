"""`trainstack versions`, with emulated responses of AWS and chart repositories."""

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
from tests.trainstack.cli.command import checked, run_json
from tests.trainstack.preflight.aws.asking import Cloud
from trainstack.cli.app import app
from trainstack.cli.versions import show
from trainstack.versions import aws, newest
from trainstack.versions.aws import eks

SHIPPED = CONFIG / "Pulumi.dev-aws.yaml"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_login, "clients", Cloud)
    monkeypatch.setattr(eks, "kubernetes", lambda _: "1.37")
    monkeypatch.setattr(eks, "node_image", lambda *_: "1.36.9-20261101")
    known = {"coredns": "v1.99.0-eksbuild.1", "kube-proxy": "v1.36.0-eksbuild.21"}
    monkeypatch.setattr(eks, "addon", lambda _, name, *__: known.get(name))
    monkeypatch.setattr(newest, "chart", lambda *_: "0.18.2")


@pytest.fixture
def charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chart repositories respond; requests to AWS are real."""
    monkeypatch.setattr(newest, "chart", lambda *_: "99.0.0")


def pins(*arguments: str) -> tuple[int, dict[str, Any]]:
    """(exit code, pins by kind and name)."""
    code, found = run_json("versions", *arguments)
    return code, {f"{row['kind']} {row['name']}": row for row in found["pins"]}


@pytest.mark.usefixtures("answers")
def test_newer_versions_and_the_nodes_that_they_drain() -> None:
    code, found = pins("-s", "dev-aws")
    assert code == 0
    nodes = "every node of system (2 to 6), a100 (0 to 4), l4 (0 to 8), cpu (0 to 4)"
    image, kubernetes = found["node image all pools"], found["Kubernetes control plane"]
    assert (image["pinned"], image["newest"], image["drains"]) == (
        "1.36.2-20260714",
        "1.36.9-20261101",
        nodes,
    )
    assert kubernetes["drains"].startswith(nodes) and kubernetes["is_newer"]
    assert kubernetes["steps"][-1] == kubernetes["newest"]
    assert found["add-on coredns"]["newest"] == "v1.99.0-eksbuild.1"
    assert not found["add-on kube-proxy"]["is_newer"]
    metrics = found["add-on metrics-server"]
    assert (metrics["pinned"], metrics["newest"]) == ("v0.9.0-eksbuild.7", None)
    text = CliRunner().invoke(app, ["versions", "-s", "dev-aws"]).output
    assert len(text.partition("Facts to check")[0].splitlines()) == 1 + len(found) + 1


@pytest.mark.usefixtures("answers")
def test_an_addon_without_a_known_version_is_the_choice_of_eks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that no stack has: the catalog lists a version of each of the others.
    monkeypatch.setattr(aws, "ADDONS", ("snapshot-controller",))
    path = tmp_path / SHIPPED.name
    path.write_text(SHIPPED.read_text())
    show("dev-aws", tmp_path, update=False, as_json=True)
    rows = {row["name"]: row["pinned"] for row in checked(capsys.readouterr().out)["pins"]}
    assert rows["snapshot-controller"] is None


@pytest.mark.usefixtures("answers")
def test_update_writes_addons_and_the_image_and_leaves_kubernetes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / SHIPPED.name
    path.write_text(SHIPPED.read_text())
    show("dev-aws", tmp_path, update=True, as_json=True)
    assert checked(capsys.readouterr().out)["written"] == 2
    spec = stackspec.load_file("dev-aws", tmp_path).spec
    assert isinstance(spec.on, AwsSpec) and isinstance(spec.layout, ClusterLayout)
    assert spec.on.addon_versions == {"coredns": "v1.99.0-eksbuild.1"}
    assert spec.on.node_image == "1.36.9-20261101"
    assert spec.layout.kubernetes_version == "1.36"


@pytest.mark.usefixtures("answers")
def test_a_version_that_the_stack_file_would_be_refused_with_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / SHIPPED.name
    path.write_text(SHIPPED.read_text())
    with pytest.raises(UserError) as caught:
        show("dev-aws", tmp_path, update=True, kubernetes=True)
    assert ("kubernetes-version-not-offered", "layout.kubernetes_version") in caught.value.codes
    assert path.read_text() == SHIPPED.read_text()


@pytest.mark.usefixtures("answers")
def test_a_pinned_addon_without_a_version_for_the_next_kubernetes_stops_the_update(tmp_path: Path) -> None:
    path, pinned = (
        tmp_path / SHIPPED.name,
        "    on:\n      addon_versions: {metrics-server: v0.9.0-eksbuild.7}\n",
    )
    before = SHIPPED.read_text().replace("    on:\n", pinned)
    path.write_text(before)
    with pytest.raises(UserError) as caught:
        show("dev-aws", tmp_path, update=True, kubernetes=True)
    assert caught.value.codes == (("no-version-for-kubernetes", "add-on metrics-server"),)
    assert path.read_text() == before


@pytest.mark.usefixtures("answers")
def test_the_newest_minor_version_has_no_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / SHIPPED.name
    path.write_text(SHIPPED.read_text())
    monkeypatch.setattr(eks, "kubernetes", lambda _: "1.36")
    with pytest.raises(UserError) as caught:
        show("dev-aws", tmp_path, update=True, kubernetes=True)
    assert caught.value.codes == (("no-newer-kubernetes", "--kubernetes"),)


def test_kubernetes_is_a_part_of_an_update() -> None:
    done = CliRunner().invoke(app, ["versions", "-s", "dev-aws", "--kubernetes"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("option-missing", "--kubernetes"),)


def test_on_gke_there_is_nothing_to_write_and_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def chart(*_: Any) -> str:
        raise AssertionError("a repository was asked")

    monkeypatch.setattr(newest, "chart", chart)
    path = CONFIG / "Pulumi.dev-gcp.yaml"
    before = path.read_bytes()
    done = CliRunner().invoke(app, ["versions", "-s", "dev-gcp", "--update"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("versions-not-pinned", "--update"),)
    assert path.read_bytes() == before and "written" not in done.output


@pytest.mark.usefixtures("answers")
def test_a_repository_that_does_not_answer_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def chart(*_: Any) -> str:
        raise requests.ConnectionError("no way to the repository")

    monkeypatch.setattr(newest, "chart", chart)
    code, found = pins("-s", "dev-aws")
    assert (code, found["chart kueue"]["error"]) == (2, "no way to the repository")


@pytest.mark.usefixtures("charts")
def test_without_credentials_charts_are_shown_and_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    assert "Unable to locate credentials" in logged_out()


@pytest.mark.usefixtures("charts")
def test_a_profile_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert "(missing) could not be found" in logged_out()


@pytest.mark.usefixtures("charts")
@pytest.mark.parametrize("code", ["ExpiredTokenException", "UnrecognizedClientException"])
def test_credentials_that_aws_refuses(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    assert f"{code}: is invalid" in logged_out(refusing(monkeypatch, code))


@pytest.mark.usefixtures("charts")
def test_a_right_that_is_missing_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, "AccessDeniedException")
    code, found = pins("-s", "dev-aws")
    assert (code, found["chart kueue"]["newest"]) == (2, "99.0.0")
    assert "AccessDeniedException" in found["Kubernetes control plane"]["error"]


def refusing(monkeypatch: pytest.MonkeyPatch, code: str) -> Cloud:
    """An account that denies every request of the command."""
    cloud = Cloud()
    cloud.refuses("eks", "describe_cluster_versions", code, "is invalid")
    cloud.refuses("ssm", "get_parameter", code, "is invalid")
    for _ in ADDONS:
        cloud.refuses("eks", "describe_addon_versions", code, "is invalid")
    monkeypatch.setattr(aws_login, "clients", lambda: cloud)
    return cloud


def logged_out(cloud: Cloud | None = None) -> str:
    """The output without a login on AWS: charts are known, and nothing is written."""
    before = SHIPPED.read_bytes()
    done = CliRunner().invoke(app, ["versions", "-s", "dev-aws", "--update"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("logged-out", "credentials"),)
    assert "99.0.0" in done.output
    assert SHIPPED.read_bytes() == before
    assert cloud is None or cloud.is_exhausted()
    return done.output
