"""Stacks of a fleet: contradictions between clients, a broken one beside others, selection."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from tests.trainstack.cli.command import run_json
from tests.trainstack.fleet.agency import ACCOUNT, add_client, write_fleet


def listed(path: Path, *words: str) -> tuple[int, list[str], list[str]]:
    """(exit code, stacks, codes of problems)."""
    code, found = run_json("fleet", "list", "--file", str(path), *words)
    return code, [one["stack"] for one in found["stacks"]], [one["code"] for one in found["problems"]]


def refused(path: Path, *words: str) -> list[str]:
    with pytest.raises(UserError) as raised:
        run_json("fleet", "list", "--file", str(path), *words)
    return [one.code for one in raised.value.problems]


@pytest.fixture
def agency(tmp_path: Path) -> Path:
    for name in ("acme", "globex"):
        add_client(tmp_path, name)
        add_client(tmp_path, name, environment="prod")
    add_client(tmp_path, "hooli", cloud="gcp")
    clients: list[dict[str, Any]] = [
        {"name": "acme", "tags": ["eu"]},
        {"name": "globex"},
        {"name": "hooli", "tags": ["eu", "canary"]},
    ]
    return write_fleet(tmp_path, clients)


@pytest.mark.parametrize(
    ("words", "stacks"),
    [
        ([], ["acme-dev", "acme-prod", "globex-dev", "globex-prod", "hooli-dev"]),
        (["--client", "acme"], ["acme-dev", "acme-prod"]),
        (["--client", "acme", "--client", "hooli", "--environment", "dev"], ["acme-dev", "hooli-dev"]),
        (["--cloud", "gcp"], ["hooli-dev"]),
        (["--environment", "prod"], ["acme-prod", "globex-prod"]),
        (["--tag", "eu", "--cloud", "aws"], ["acme-dev", "acme-prod"]),
    ],
)
def test_stacks_are_selected(agency: Path, words: list[str], stacks: list[str]) -> None:
    assert listed(agency, *words) == (0, stacks, [])


def test_a_condition_that_no_stack_meets_is_refused(agency: Path) -> None:
    for words in (["--client", "acm"], ["--cloud", "azure"], ["--tag", "us"], ["--environment", "test"]):
        assert refused(agency, *words) == ["selection-unknown"]
    assert refused(agency, "--client", "acme", "--cloud", "gcp") == ["no-stack-selected"]


def git(folder: Path, *words: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, "-C", str(folder), *words], check=True, capture_output=True)


def test_only_folders_that_differ_from_a_commit_are_selected(agency: Path) -> None:
    base = agency.parent
    assert refused(agency, "--changed-since", "HEAD") == ["folder-without-git"] * 3
    git(base, "init", "-q")
    git(base, "add", "-A")
    git(base, "commit", "-q", "-m", "first")
    assert listed(agency, "--changed-since", "HEAD") == (0, [], [])
    with (base / "acme" / "Pulumi.acme-prod.yaml").open("a") as file:
        file.write("# reviewed\n")
    (base / "globex" / "waivers.yaml").write_text("waivers: []\n")
    assert listed(agency, "--changed-since", "HEAD")[1] == ["acme-prod", "globex-dev", "globex-prod"]
    # A stack file that is not selected is no reason for its neighbour.
    assert listed(agency, "--changed-since", "HEAD", "--environment", "dev")[1] == ["globex-dev"]
    git(base, "add", "-A")
    git(base, "commit", "-q", "-m", "second")
    assert listed(agency, "--changed-since", "HEAD")[1] == []
    assert listed(agency, "--changed-since", "HEAD~1")[1] == ["acme-prod", "globex-dev", "globex-prod"]
    assert set(refused(agency, "--changed-since", "--output=x")) == {"revision-unknown"}


def test_a_broken_client_does_not_hide_the_others(tmp_path: Path) -> None:
    add_client(tmp_path, "acme")
    (tmp_path / "empty").mkdir()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "Pulumi.yaml").write_text("name: foreign\nruntime: python\n")
    add_client(tmp_path, "globex")
    (tmp_path / "globex" / "Pulumi.globex-dev.yaml").write_text("config: {a: [")
    names = ("acme", "gone", "empty", "foreign", "globex")
    clients = [{"name": name} for name in names] + [
        {"name": "other", "folder": "acme/../globex/.", "stacks": ["x"]}
    ]
    write_fleet(tmp_path, clients[:5])
    code, stacks, codes = listed(tmp_path / "fleet.yaml")
    assert (code, stacks) == (1, ["acme-dev"])
    assert codes == [
        "client-folder-missing",
        "client-folder-missing",
        "client-folder-foreign",
        "invalid-yaml",
    ]
    write_fleet(tmp_path, clients)
    assert refused(tmp_path / "fleet.yaml") == ["client-folder-repeated"]


def test_one_name_for_two_clients_is_refused(tmp_path: Path) -> None:
    add_client(tmp_path, "acme")
    add_client(tmp_path, "other")
    path = write_fleet(tmp_path, [{"name": "acme"}, {"name": "Acme", "folder": "other"}])
    assert refused(path) == ["client-name-repeated"]


def test_one_account_and_one_name_of_a_stack_is_refused(tmp_path: Path) -> None:
    for name in ("acme", "globex"):
        folder = add_client(tmp_path, name)
        (folder / f"Pulumi.{name}-dev.yaml").rename(folder / "Pulumi.dev.yaml")
    path = write_fleet(tmp_path, [{"name": "acme"}, {"name": "globex"}])
    assert refused(path) == ["account-and-stack-repeated"]
    text = (tmp_path / "globex" / "Pulumi.dev.yaml").read_text()
    (tmp_path / "globex" / "Pulumi.dev.yaml").write_text(text.replace(ACCOUNT, "210987654321"))
    assert listed(path)[1] == ["dev", "dev"]


def test_one_pulumi_stack_for_two_environments_is_refused(tmp_path: Path) -> None:
    accounts = ("111111111111", "222222222222")
    for name, account in zip(("acme", "globex"), accounts, strict=True):
        folder = add_client(tmp_path, name, account=account)
        (folder / f"Pulumi.{name}-dev.yaml").rename(folder / "Pulumi.dev.yaml")
        text = (folder / "Pulumi.yaml").read_text()
        (folder / "Pulumi.yaml").write_text(text.replace(f"name: {name}", "name: stacks"))
    clients = [{"name": "acme"}, {"name": "globex"}]
    path = write_fleet(tmp_path, clients, backend={"url": "file:///srv/state"})
    assert refused(path) == ["pulumi-stack-shared"]
    path = write_fleet(
        tmp_path,
        [{**clients[0], "backend": {"url": "file:///srv/other"}}, clients[1]],
        backend={"url": "file:///srv/state"},
    )
    assert listed(path)[1] == ["dev", "dev"]


def test_entries_that_cannot_be_used_are_listed(tmp_path: Path) -> None:
    for name in ("acme", "globex", "initech"):
        add_client(tmp_path, name)
    add_client(tmp_path, "acme", environment="prod")
    add_client(tmp_path, "hooli", cloud="gcp")
    google = {"google": {"service_account": "deployer-{stack}@hooli-ml.iam.gserviceaccount.com"}}
    clients: list[dict[str, Any]] = [
        {"name": "acme", "backend": {"url": "file:///srv/acme", "passphrase": {"file": "gone"}}},
        {"name": "globex", "backend": {"url": "file:///srv/globex"}},
        {"name": "initech"},
        {"name": "hooli", "credentials": google, "backend": {"url": "s3://agency"}},
    ]
    code, stacks, codes = listed(write_fleet(tmp_path, clients))
    assert (code, len(stacks)) == (1, 5)
    assert codes == ["credentials-unusable", "backend-without-login"], "one of each client"
