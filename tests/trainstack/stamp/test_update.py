"""`trainstack update` on folders of clients: real renderings, which change as those of a newer version."""

import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from infra import stackspec
from infra.errors import UserError
from infra.exit_codes import ExitCode
from policies import yaml_file
from tests.trainstack.cli.command import run, run_json
from trainstack.stamp import client, lock, transaction
from trainstack.stamp.choices import ClientChoices
from trainstack.stamp.stack_file import completed

FILE = "Pulumi.acme-dev.yaml"


def chosen(profile: str) -> ClientChoices:
    return completed(ClientChoices("acme", "aws", profile, owner="ml@acme.com", budget=40000))


CHOICES, WITH_NODES = chosen("small"), chosen("medium")


def rendered(choices: ClientChoices = CHOICES) -> Mapping[str, str]:
    return client.render(choices).texts


def older(folder: Path, choices: ClientChoices, audit: str = "") -> Path:
    """A client's folder with the rendering of an older version: other values, `audit` above its settings."""
    texts = dict(rendered(choices))
    texts[client.AUDIT] = audit + texts[client.AUDIT]
    first = texts[FILE].replace("max_nodes: 4", "max_nodes: 6", 1)
    texts[FILE] = first.replace("monthly_usd: 40000", "monthly_usd: 30000")
    texts["dropped.txt"] = "of the older version\n"
    stamp = lock.Stamp("0.0.9", asdict(choices), texts)
    for name, text in {**texts, **lock.files(stamp)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return older(tmp_path, CHOICES)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def files(folder: Path) -> dict[str, str]:
    hidden = (".git", ".trainstack")
    found = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path for path in found}
    return {name: path.read_text() for name, path in names.items() if name.split("/")[0] not in hidden}


def git(folder: Path, *words: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@x.org", *words]
    subprocess.run(command, check=True, capture_output=True)


def code(*words: str) -> set[str]:
    with pytest.raises(UserError) as refused:
        run("update", *words)
    return {problem.code for problem in refused.value.problems}


def test_what_the_client_did_not_edit_becomes_the_new_rendering(folder: Path) -> None:
    edit(folder / FILE, "expires_on: never", "expires_on: 2027-03-31")
    exit_code, document = run_json("update", str(folder), "--yes")
    assert (exit_code, document["written"], document["from"]) == (0, True, "0.0.9")
    assert {one["path"]: one["change"] for one in document["files"]} == {
        FILE: "change",
        "dropped.txt": "remove",
    }
    expected = {
        **rendered(),
        FILE: rendered()[FILE].replace("expires_on: never", "expires_on: 2027-03-31"),
    }
    stamp = lock.Stamp(lock.installed(), asdict(CHOICES), rendered())
    assert files(folder) == {**expected, **lock.files(stamp)}
    (stack,) = document["stacks"]
    assert stack["values"] == [{"path": "budget.monthly_usd", "before": 30000, "after": 40000}]
    assert stack["policies_after"]["violations"] == []
    before = files(folder)
    assert run_json("update", str(folder), "--yes")[1]["written"] is False
    assert files(folder) == before


def test_a_price_that_changes_is_shown_before_a_file_changes(tmp_path: Path) -> None:
    folder = older(tmp_path, WITH_NODES)
    before = files(folder)
    exit_code, document = run_json("update", str(folder), "--dry-run")
    assert (exit_code, document["written"]) == (0, False)
    (stack,) = document["stacks"]
    assert stack["price_before"]["maximum_usd"] > stack["price_after"]["maximum_usd"]
    assert {"path": "layout.pools[a100].max_nodes", "before": 6, "after": 4} in stack["values"]
    planned = {(one["change"], one["resource"].partition(" ")[0]) for one in stack["plan"]}
    kinds = ("aws:budgets/budget:Budget", "aws:eks/nodeGroup:NodeGroup")
    assert planned == {("change", kind) for kind in (*kinds, "kubernetes:kueue.x-k8s.io/v1beta2:Cohort")}
    assert stack["policies_before"]["violations"] and not stack["policies_after"]["violations"]
    assert files(folder) == before


def test_an_update_that_was_killed_is_finished_by_the_next_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(transaction, "_finish", killed)
        run("update", str(folder), "--yes")
    assert transaction.interrupted(folder)
    assert code(str(folder), "--dry-run") == {"client-update-interrupted"}
    assert run("update", str(folder), "--yes", "--dirty")[0] == 0
    assert lock.read(folder).version == lock.installed()
    assert not transaction.interrupted(folder)


def test_a_conflict_writes_nothing_and_shows_both_places(folder: Path) -> None:
    edit(folder / FILE, "monthly_usd: 30000", "monthly_usd: 35000 # agreed")
    before = files(folder)
    exit_code, document = run_json("update", str(folder), "--yes")
    assert (exit_code, document["written"]) == (ExitCode.FAILED, False)
    (conflict,) = document["conflicts"]
    assert conflict["key"] == "config.trainstack:spec.budget.monthly_usd"
    lines = before[FILE].splitlines(), rendered()[FILE].splitlines()
    assert "35000" in lines[0][conflict["line"] - 1] and "40000" in lines[1][conflict["template_line"] - 1]
    assert files(folder) == before


def test_markers_are_written_on_request_and_the_next_update_asks_for_their_resolution(folder: Path) -> None:
    edit(folder / FILE, "monthly_usd: 30000", "monthly_usd: 35000 # agreed")
    assert run_json("update", str(folder), "--yes", "--conflicts")[1]["written"] is True
    text = (folder / FILE).read_text()
    assert text.count("<<<<<<< ") == text.count(">>>>>>> ") == 1
    assert lock.read(folder).version == lock.installed()
    marked = files(folder)
    exit_code, document = run_json("update", str(folder), "--yes", "--conflicts", "--dirty")
    line = text.splitlines().index("<<<<<<< yours") + 1
    assert (exit_code, document["written"]) == (ExitCode.FAILED, False)
    assert (document["unresolved"], document["stacks"]) == ([{"path": FILE, "line": line}], [])
    assert files(folder) == marked
    with pytest.raises(UserError) as refused:
        stackspec.load_file("acme-dev", folder)
    assert refused.value.codes == (("conflict-markers", FILE),)


def test_files_with_markers_of_a_merge_are_named(folder: Path) -> None:
    marked = "waivers:\n<<<<<<< HEAD\n- rule: MLS-NET-05\n=======\n- rule: MLS-NET-06\n>>>>>>> main\n"
    (folder / client.WAIVERS).write_text(marked)
    exit_code, document = run_json("update", str(folder), "--dry-run")
    assert (exit_code, document["unresolved"]) == (ExitCode.FAILED, [{"path": client.WAIVERS, "line": 2}])
    with pytest.raises(UserError) as refused:
        yaml_file.load(folder / client.WAIVERS, frozenset({"waivers"}), "")
    assert {problem.code for problem in refused.value.problems} == {"conflict-markers"}
    edit(folder / lock.LOCK, "package: 0.0.9\n", "<<<<<<< HEAD\npackage: 0.0.9\n=======\n>>>>>>> main\n")
    assert code(str(folder), "--dry-run") == {"conflict-markers"}


def test_changes_beside_a_conflict_are_shown(tmp_path: Path) -> None:
    folder = older(tmp_path, WITH_NODES)
    edit(folder / FILE, "monthly_usd: 30000", "monthly_usd: 35000 # agreed")
    exit_code, document = run_json("update", str(folder), "--dry-run")
    (stack,) = document["stacks"]
    assert (exit_code, stack["conflicts"]) == (ExitCode.FAILED, [FILE])
    assert stack["values"] == [{"path": "layout.pools[a100].max_nodes", "before": 6, "after": 4}]
    assert stack["price_before"]["maximum_usd"] > stack["price_after"]["maximum_usd"]


def test_a_copied_or_renamed_stack_is_judged_without_settings_of_its_own(tmp_path: Path) -> None:
    folder = older(tmp_path, CHOICES, audit="# of the older version\n")
    (folder / "Pulumi.acme-staging.yaml").write_text((folder / FILE).read_text())
    (folder / "Pulumi.acme-prod.yaml").rename(folder / "Pulumi.acme-live.yaml")
    exit_code, document = run_json("update", str(folder), "--yes")
    assert (exit_code, document["written"]) == (0, True)
    notes = {one["stack"]: one["policies_after"]["notes"] for one in document["stacks"]}
    assert notes.keys() == {"acme-dev", "acme-live", "acme-staging"} and notes["acme-dev"] == []
    assert all(client.AUDIT in notes[name][0] for name in ("acme-live", "acme-staging"))


def test_a_renamed_waiver_file_is_read_where_the_settings_of_the_policy_pack_name_it(tmp_path: Path) -> None:
    moved = "exceptions.yaml"
    folder = older(tmp_path, CHOICES, audit="# of the older version\n")
    (folder / client.WAIVERS).rename(folder / moved)
    edit(folder / "policies/dev.json", client.WAIVERS, moved)
    stacks = run_json("update", str(folder), "--dry-run")[1]["stacks"]
    notes = {one["stack"]: one["policies_after"]["notes"] for one in stacks}
    assert notes["acme-dev"] == [] and client.WAIVERS in notes["acme-prod"][0]
    (folder / moved).write_text("waivers: [{}]\n")
    with pytest.raises(UserError) as refused:
        run("update", str(folder), "--dry-run")
    assert {problem.path.partition(":")[0] for problem in refused.value.problems} == {moved}
    assert not any("'None'" in str(problem) for problem in refused.value.problems)


def test_a_rule_that_only_the_change_breaks_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {**rendered(), FILE: rendered()[FILE].replace("monthly_usd: 40000", "monthly_usd: -1")}
    monkeypatch.setattr(client, "render", lambda _: client.ClientFiles(CHOICES, texts, {}))
    before = files(folder)
    assert code(str(folder), "--yes")
    assert files(folder) == before


def test_a_tree_with_uncommitted_changes_is_refused(folder: Path) -> None:
    git(folder, "init", "-q")
    assert code(str(folder), "--yes") == {"client-tree-dirty"}
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    edit(folder / "README.md", "# acme", "# Acme")
    assert code(str(folder), "--yes") == {"client-tree-dirty"}
    assert run("update", str(folder), "--yes", "--dirty")[0] == 0
    assert "# Acme" in (folder / "README.md").read_text()


def test_only_the_installed_version_renders(folder: Path) -> None:
    assert code(str(folder), "--to", "0.0.1") == {"another-version-installed"}
    assert code(str(folder), "--to", "foo") == {"version-invalid"}
    assert code(str(folder / "nosuch"), "--to", "foo", "--approve", "x") == {
        "no-client-folder", "version-invalid", "option-needs-prove"
    }  # fmt: skip
    assert run("update", str(folder), "--to", lock.installed(), "--yes")[0] == 0


def test_without_a_terminal_nothing_is_written_unless_confirmed(folder: Path) -> None:
    before = files(folder)
    assert code(str(folder)) == {"confirmation-needs-terminal"}
    assert files(folder) == before


def test_a_folder_without_a_lock_is_refused(tmp_path: Path) -> None:
    assert code(str(tmp_path)) == {"no-client-folder"}
    (tmp_path / FILE).write_text(rendered()[FILE])
    assert code(str(tmp_path)) == {"client-lock-missing"}
    assert code(str(tmp_path / "absent")) == {"no-client-folder"}


def test_answers_of_another_version_are_refused(folder: Path) -> None:
    stamp = lock.read(folder)
    answers: dict[str, Any] = {**stamp.answers, "colour": "blue"}
    for name, text in lock.files(lock.Stamp(stamp.version, answers, stamp.texts)).items():
        (folder / name).write_text(text)
    assert code(str(folder), "--yes") == {"client-answers-invalid"}
