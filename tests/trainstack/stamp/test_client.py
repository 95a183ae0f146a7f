"""`trainstack new`: files of a client's folder, from shipped stack files."""

from pathlib import Path

import pytest

from infra import stackspec
from infra.engine.golang import SetupError
from infra.errors import UserError
from infra.stackspec.supported import SUPPORTED
from tests.trainstack.cli.command import run
from trainstack.stamp import client, environment
from trainstack.stamp.client import ClientChoices

FILES = {".gitignore", "Pulumi.dev.yaml", "Pulumi.yaml", "README.md"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def code(*words: str) -> str:
    with pytest.raises(UserError) as refused:
        run("new", *words)
    (kind,) = {problem.code for problem in refused.value.problems}
    return kind


@pytest.mark.parametrize(("profile", "cloud"), sorted(SUPPORTED))
def test_every_supported_pair_makes_a_folder_whose_stack_is_valid(
    profile: str, cloud: str, tmp_path: Path
) -> None:
    assert run("new", "acme", "--profile", profile, "--cloud", cloud)[0] == 0
    assert found(tmp_path / "acme") == {*FILES, ".trainstack"}
    spec = stackspec.load_file("dev", tmp_path / "acme").spec
    assert (spec.layout.profile, spec.cloud, spec.name) == (profile, cloud, "dev")


def test_options_replace_values_and_zones_of_the_shipped_file(tmp_path: Path) -> None:
    words = ("--owner", "ml@acme.com", "--budget", "40000", "--region", "us-west-2")
    assert run("new", "acme", *words)[0] == 0
    spec = stackspec.load_file("dev", tmp_path / "acme").spec
    assert (spec.owner, spec.budget.monthly_usd, spec.region) == ("ml@acme.com", 40000, "us-west-2")
    assert [*spec.budget.alert_emails] == ["ml@acme.com"]
    text = (tmp_path / "acme" / "Pulumi.dev.yaml").read_text()
    assert "us-east-1" not in text and "# RDMA (EFA) does not cross zones" in text


OWNERS = ("a: b", "x # y", "[1, 2]", "null", '"', "a\nb: c", "&a", "42", "{", "é@x.org")
NO_NAMES = ("", ".", "..", "a b", "a/b", "/a", "../a", "-a", "1a", "é", "a" * 40, "a" * 200, "a\n", "a.b")


@pytest.mark.parametrize("owner", OWNERS)
def test_an_owner_is_text_whatever_yaml_would_make_of_it(owner: str) -> None:
    try:
        files = client.render(ClientChoices("acme", "aws", "small", owner=owner))
    except UserError as refused:
        assert all(problem.value in (owner, [owner]) for problem in refused.problems)
    else:
        assert files.loaded.spec.owner == owner


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_no_plain_word_is_refused(name: str, tmp_path: Path) -> None:
    assert code("--", name) == "client-name-invalid"
    assert found(tmp_path) == set()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("--cloud", "azure"), "no-such-choice"),
        (("--profile", "large"), "profile-not-on-cloud"),
        (("--region", "us-weest-2"), "unknown-region"),
        (("--region", 'x" y'), "unknown-region"),
        (("--profile", "small-cluster", "--region", "eu-west-1"), "machine-not-in-region"),
    ],
)
def test_a_stack_that_would_be_invalid_is_refused_before_a_file_is_written(
    words: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    assert code("acme", *words) == kind
    assert found(tmp_path) == set()


@pytest.mark.parametrize("there", [*sorted(FILES), "link"])
def test_no_file_is_overwritten_and_none_is_written_beside_it(there: str, tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    folder.mkdir()
    if there == "link":
        (folder / "Pulumi.yaml").symlink_to(tmp_path / "victim")
    else:
        (folder / there).write_text("mine")
    before = found(folder)
    assert code("acme") == "client-file-exists"
    assert found(folder) == before and found(tmp_path) == {"acme"}
    if there != "link":
        assert (folder / there).read_text() == "mine"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "acme").write_text("mine")
    assert code("acme") == "client-file-exists"
    assert (tmp_path / "acme").read_text() == "mine"


def test_an_empty_repository_is_filled(tmp_path: Path) -> None:
    (tmp_path / "acme" / ".git").mkdir(parents=True)
    assert run("new", "acme")[0] == 0
    assert found(tmp_path / "acme") == {*FILES, ".git", ".trainstack"}


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    texts = {"Pulumi.yaml": "a", "no/such/folder": "b"}
    with pytest.raises(UserError):
        client.write(texts, tmp_path / "acme")
    assert found(tmp_path) == set()


def test_a_dry_run_prints_the_files_and_writes_none(tmp_path: Path) -> None:
    done, printed = run("new", "acme", "--dry-run")
    assert done == 0 and found(tmp_path) == set()
    texts = client.render(ClientChoices("acme", "aws", "medium")).texts
    assert set(texts) == FILES and all(text in printed for text in texts.values())


def test_links_are_renewed_when_they_were_changed(tmp_path: Path) -> None:
    environment.link(tmp_path)
    stub, venv = tmp_path / ".trainstack/program/__main__.py", tmp_path / environment.VENV
    text, target = stub.read_text(), venv.readlink()
    stub.write_text("raise SystemExit('changed by a member')")
    venv.unlink()
    venv.symlink_to(tmp_path)
    environment.link(tmp_path)
    assert (stub.read_text(), venv.readlink()) == (text, target)


def test_a_link_that_cannot_be_written_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / environment.VENV).mkdir(parents=True)
    with pytest.raises(SetupError):
        environment.link(tmp_path)
    assert [path.name for path in (tmp_path / ".trainstack").iterdir() if path.name.startswith(".venv")] == []
