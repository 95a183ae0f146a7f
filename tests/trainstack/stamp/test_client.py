"""`trainstack new`: files of a client's folder, from shipped stack files."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra import stackspec
from infra.engine.golang import SetupError
from infra.errors import UserError
from infra.stackspec import json_schema
from policies.judge import Judge
from policies.settings import RuleSettings
from tests.trainstack.cli.command import run
from trainstack.stamp import client, environment, lock, neighbours
from trainstack.stamp.choices import LONGEST, ClientChoices, of_answers
from trainstack.stamp.clouds import PAIRS, STAMPED
from trainstack.stamp.folder import write

STACKS = ("acme-dev", "acme-prod")
TODAY = RuleSettings().today


def choices(profile: str = "medium", cloud: str = "aws", **changed: Any) -> ClientChoices:
    return replace(ClientChoices("acme", cloud, profile, owner="ml@acme.com"), **changed)


def found(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("profile", "cloud"), sorted(PAIRS))
def test_every_supported_pair_makes_two_valid_stacks_even_of_a_long_name(
    profile: str, cloud: str, tmp_path: Path
) -> None:
    name = "a" * LONGEST
    files = client.render(choices(profile, cloud, name=name))
    write(files.stamped, tmp_path / name)
    specs = {
        stack: stackspec.load_file(stack, tmp_path / name).spec for stack in (f"{name}-dev", f"{name}-prod")
    }
    assert {stack: one.environment for stack, one in specs.items()} == {
        f"{name}-dev": "dev",
        f"{name}-prod": "prod",
    }
    dev, prod = specs.values()
    assert (dev.data.protect, prod.data.protect) == (False, True)
    assert (dev.data.on_destroy, prod.data.on_destroy) == ("discard", "keep")
    assert (dev.owner, dev.tags["client"], [*prod.budget.alert_emails]) == (
        "ml@acme.com",
        name,
        ["ml@acme.com"],
    )
    schema = json_schema.PATH.read_text()
    for stack in specs:
        Judge.read(tmp_path / name / client.AUDIT, tmp_path / name / client.WAIVERS, TODAY, stack)
        content = YAML(typ="safe").load(files.texts[f"Pulumi.{stack}.yaml"])
        jsonschema.Draft202012Validator(YAML(typ="safe").load(schema)).validate(content)


def test_the_same_answers_give_the_same_bytes_and_the_lock_keeps_them(tmp_path: Path) -> None:
    files = client.render(choices(account="111122223333", region="eu-west-1", budget=40000))
    write(files.stamped, tmp_path / "acme")
    stamp = lock.read(tmp_path / "acme")
    assert (stamp.texts, stamp.version) == (files.texts, lock.installed())
    assert client.render(of_answers(stamp.answers)).texts == files.texts
    for answers in ({**stamp.answers, "size": 1}, {**stamp.answers, "budget": "1"}, {}):
        with pytest.raises(UserError):
            of_answers(answers)


def test_choices_reach_values_and_zones_of_every_environment() -> None:
    files = client.render(choices(region="us-west-2", account="111122223333", budget=40000))
    for loaded in files.loaded.values():
        spec: Any = loaded.spec
        assert (spec.region, spec.budget.monthly_usd, spec.on.account_id) == (
            "us-west-2",
            40000,
            "111122223333",
        )
        assert {pool.zones[0][:-1] for pool in spec.layout.pools} == {"us-west-2"}
    text = files.texts["Pulumi.acme-dev.yaml"]
    assert (
        "us-east-1" not in text and "123456789012" not in text and "# RDMA (EFA) does not cross zones" in text
    )


@pytest.mark.parametrize(
    ("cloud", "profile", "region"),
    [("aws", "medium", "eu-west-1"), ("gcp", "medium", "europe-west4"), ("gcp", "small-cluster", "us-east4")],
)
def test_a_region_with_other_machines_or_zones_gets_those_that_it_has(
    cloud: str, profile: str, region: str
) -> None:
    loaded = client.render(choices(profile, cloud, region=region)).loaded
    assert {one.spec.region for one in loaded.values()} == {region}


@pytest.mark.parametrize(("profile", "cloud"), sorted(PAIRS))
def test_policies_allow_the_accelerators_of_the_stack_files_in_every_region(profile: str, cloud: str) -> None:
    made = 0
    for region in STAMPED[cloud].regions:
        try:
            files = client.render(choices(profile, cloud, region=region))
        except UserError as refused:
            assert {path for _, path in refused.codes} == {"--region"}
            continue
        made += 1
        for stack in files.loaded:
            text, audit = (
                files.texts[f"Pulumi.{stack}.yaml"],
                YAML(typ="safe").load(files.texts[client.AUDIT]),
            )
            settings = RuleSettings(**((audit["environments"][stack] or {}).get("settings") or {}))
            machines = re.findall(r"\bmachine: (?:ml\.)?([\w.-]+)", text)
            used = {STAMPED[cloud].accelerator(one) for one in machines} - {""}
            assert used <= {*settings.allowed_accelerators}, (region, stack)
    assert made > 5


OWNERS = ("a: b", "x # y", "[1, 2]", "null", '"', "a\nb: c", "&a", "42", "{", "é@x.org", 'a"b@x.org')


@pytest.mark.parametrize("owner", OWNERS)
def test_an_owner_is_text_whatever_yaml_would_make_of_it(owner: str) -> None:
    try:
        files = client.render(choices("small", owner=owner))
    except UserError as refused:
        assert {(one.path, one.value) for one in refused.problems} == {("--owner", owner)}
    else:
        assert {one.spec.owner for one in files.loaded.values()} == {owner}


NO_NAMES = (
    *("", ".", "..", "a b", "a/b", "/a", "../a", "-a", "1a", "a", "a-", "a--b", "é", "démo", "Demo"),
    *("a" * (LONGEST + 1), "a" * 200, "a\n", "a.b", "a_b", "con\u202e"),
)


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_no_plain_word_is_refused_with_one_that_is(name: str) -> None:
    with pytest.raises(UserError) as refused:
        client.render(choices(name=name))
    (one,) = refused.value.problems
    assert (one.code, one.path) == ("client-name-invalid", "CLIENT") and len(str(one)) < 300
    suggested = one.fix.removeprefix("Such as ").removesuffix(".")
    client.render(choices("small", name=suggested))


@pytest.mark.parametrize(
    ("changed", "code", "path"),
    [
        ({"cloud": "azure"}, "no-such-choice", "--cloud"),
        ({"cloud": "existing"}, "no-such-choice", "--cloud"),
        ({"profile": "huge"}, "no-such-choice", "--profile"),
        ({"profile": "large"}, "profile-not-on-cloud", "--profile"),
        ({"region": "us-weest-2"}, "unknown-region", "--region"),
        ({"region": 'x" y'}, "unknown-region", "--region"),
        ({"region": "eu-south-1"}, "machine-not-in-region", "--region"),
        ({"owner": "bob"}, "string-pattern-mismatch", "--owner"),
        ({"account": "12"}, "account-invalid", "--account"),
        ({"budget": -1}, "greater-than", "--budget"),
    ],
)
def test_a_wrong_choice_is_one_problem_that_names_its_option(
    changed: dict[str, Any], code: str, path: str
) -> None:
    usual = replace(choices(), **changed)
    with pytest.raises(UserError) as refused:
        client.render(usual)
    assert refused.value.codes == ((code, path),)


FILES = sorted(client.render(choices("small")).stamped)


@pytest.mark.parametrize(
    "there", ["README.md", ".stamp/lock.yaml", "policies/audit.yaml", "policies", "link"]
)
def test_no_file_is_overwritten_and_none_is_written_beside_it(there: str, tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    folder.mkdir()
    if there == "link":
        (folder / "Pulumi.yaml").symlink_to(tmp_path / "victim")
    else:
        (folder / there).parent.mkdir(parents=True, exist_ok=True)
        (folder / there).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError) as refused:
        write(client.render(choices("small")).stamped, folder)
    assert refused.value.codes == (("client-file-exists", "CLIENT"),)
    assert sorted(tmp_path.rglob("*")) == before
    if there != "link":
        assert (folder / there).read_text() == "mine"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "acme").write_text("mine")
    with pytest.raises(UserError):
        write(client.render(choices("small")).stamped, tmp_path / "acme")
    assert (tmp_path / "acme").read_text() == "mine"


def test_an_empty_repository_is_filled(tmp_path: Path) -> None:
    (tmp_path / "acme" / ".git").mkdir(parents=True)
    write(client.render(choices("small")).stamped, tmp_path / "acme")
    files = {
        path.relative_to(tmp_path / "acme").as_posix()
        for path in (tmp_path / "acme").rglob("*")
        if path.is_file()
    }
    assert sorted(files) == FILES


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        write({"a/b/c": "a", "x" * 300: "b"}, tmp_path / "acme")
    assert found(tmp_path) == set()


def test_clients_in_one_parent_differ_in_project_and_account(tmp_path: Path) -> None:
    made = client.render(choices("small", account="111122223333"))
    write(made.stamped, tmp_path / "moved")
    write(client.render(choices("small", name="initech")).stamped, tmp_path / "initech")
    again, other = choices("small"), choices("small", name="globex")
    for one, expected in (
        (again, [("client-name-taken", "CLIENT")]),
        (replace(other, account="111122223333"), [("client-account-taken", "--account")]),
        (replace(other, account="444455556666"), []),
        (replace(other, account="123456789012"), []),
        (other, []),
    ):
        try:
            neighbours.check(one, tmp_path / one.name)
        except UserError as refused:
            assert [*refused.codes] == expected
        else:
            assert expected == []
    (tmp_path / "moved" / "Pulumi.yaml").write_text(made.texts["Pulumi.yaml"].replace("acme", "Globex"))
    with pytest.raises(UserError):
        neighbours.check(other, tmp_path / "globex")


def test_missing_options_are_one_error_without_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        run("new", "acme", "--cloud", "aws", "--owner", "ml@acme.com")
    (one,) = refused.value.problems
    assert one.code == "required-option-missing"
    assert all(option in one.rule for option in ("--profile", "--region", "--budget"))
    assert "--cloud" not in one.rule and found(tmp_path) == set()


def test_wrong_options_are_reported_together(tmp_path: Path) -> None:
    words = ("Acme", "--yes", "--profile", "huge", "--region", "x", "--budget", "0", "--account", "12")
    with pytest.raises(UserError) as refused:
        run("new", *words)
    assert {path for _, path in refused.value.codes} == {
        *("CLIENT", "--profile", "--region", "--budget", "--account")
    }
    assert found(tmp_path) == set()


@pytest.mark.parametrize("name", ["trainstack", "deployer", "deployer-eu"])
def test_names_that_deployers_may_not_change_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        run("new", name, "--yes", "--cloud", "aws")
    assert refused.value.codes == (("client-name-reserved", "CLIENT"),) and found(tmp_path) == set()
    run("new", name, "--yes", "--cloud", "gcp", "--profile", "small")
    run("new", f"a{name}", "--yes", "--cloud", "aws", "--profile", "small")
    assert found(tmp_path) == {name, f"a{name}"}


def test_links_are_renewed_when_they_were_changed(tmp_path: Path) -> None:
    environment.link(tmp_path)
    stub, venv = tmp_path / ".trainstack/program/__main__.py", tmp_path / environment.VENV
    text, target = stub.read_text(), venv.readlink()
    stub.write_text("raise SystemExit('changed by a member')")
    venv.unlink()
    venv.symlink_to(tmp_path)
    environment.link(tmp_path)
    assert (stub.read_text(), venv.readlink()) == (text, target)
    assert (tmp_path / environment.SCHEMA).read_bytes() == json_schema.PATH.read_bytes()


def test_a_link_that_cannot_be_written_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / environment.VENV).mkdir(parents=True)
    with pytest.raises(SetupError):
        environment.link(tmp_path)
    assert [path.name for path in (tmp_path / ".trainstack").iterdir() if path.name.startswith(".venv")] == []
