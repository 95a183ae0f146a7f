"""Refusals of a Python, a system or an installation on which a command does not work."""

import json
import shlex
import sys
from pathlib import Path

import psutil
import pytest
from packaging.requirements import Requirement

from infra import installation, places
from infra.engine.golang import SetupError
from infra.errors import UserError
from rehearsal.projects import run as project_run
from tests.trainstack.cli.command import run
from trainstack import cli
from trainstack.cli.operations import deployment, session

# Imported under the name of the system that this is: they choose their parts by it.
IMPORTED = (psutil, project_run, deployment, session)


_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def refused(*words: str) -> str:
    with pytest.raises(UserError) as error:
        run(*words)
    (problem,) = error.value.problems
    return problem.code


@pytest.mark.parametrize(
    "words",
    [
        ("up", "-s", "dev-aws", "--rehearse", "--yes"),
        ("preview", "-s", "dev-aws", "--rehearse"),
        ("destroy", "-s", "dev-aws", "--rehearse", "--yes"),
        ("rehearse", "env", "-s", "dev-aws"),
        ("rehearse", "stop"),
        ("rehearse", "run", "examples"),
        ("smoke", "run", "--ranks", "2", "--out", "result.json"),
    ],
    ids=" ".join,
)
def test_rehearsals_are_refused_outside_of_linux(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = tmp_path / "examples"
    project.mkdir()
    (project / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (project / "__main__.py").write_text("")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert (
        refused(*(str(project) if word == "examples" else word for word in words)) == "rehearsal-needs-linux"
    )


def test_other_commands_work_outside_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cli.unsupported() == ""
    assert run("explain", "budget", "-s", "dev-aws")[0] == 0
    assert run("smoke", "plan", "--help")[0] == 0


@pytest.mark.parametrize(
    ("version", "platform", "works"),
    [
        ((3, 10), "linux", False), ((3, 11), "linux", True), ((3, 13), "darwin", True),
        ((3, 14), "linux", False), ((3, 14), "darwin", False), ((3, 12), "win32", False),
    ],
)  # fmt: skip
def test_the_command_refuses_a_python_or_a_system_on_which_nothing_works(
    version: tuple[int, int], platform: str, works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    monkeypatch.setattr(sys, "platform", platform)
    assert (cli.unsupported() == "") is works
    if not works:
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code not in (None, 0)


@pytest.mark.parametrize(
    ("made_by", "start"),
    [
        ("uv-receipt.toml", f"uv tool install --python {_PYTHON} 'trainstack[rehearse]"),
        ("pipx_metadata.json", f"pipx install --force --python {_PYTHON} 'trainstack[rehearse]"),
        ("pyvenv.cfg", f"{sys.executable} -m pip install 'trainstack[rehearse]"),
    ],
)
def test_a_missing_extra_is_installed_by_the_tool_that_made_the_environment(
    made_by: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "CHECKOUT", None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / made_by).touch()
    assert installation.install_command("rehearse").startswith(start)


def installed(folder: Path, origin: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation of version 1.2.3, with the record of its origin."""
    made = folder / "trainstack-1.2.3.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.4\nName: trainstack\nVersion: 1.2.3\n")
    if origin:
        (made / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.setattr(places, "CHECKOUT", None)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ({}, "trainstack[rehearse]==1.2.3"),
        ({"url": "file:///d/x.whl", "archive_info": {}}, "trainstack[rehearse] @ file:///d/x.whl"),
        (
            {
                "url": "https://h/x.git",
                "vcs_info": {"vcs": "git", "commit_id": "a1", "requested_revision": "v1"},
            },
            "trainstack[rehearse] @ git+https://h/x.git@a1",
        ),
        (
            {"url": "ssh://h/x", "vcs_info": {"vcs": "git", "commit_id": "a1"}, "subdirectory": "a/b"},
            "trainstack[rehearse] @ git+ssh://h/x@a1#subdirectory=a/b",
        ),
    ],
)
def test_an_extra_comes_from_where_the_package_came(
    origin: dict[str, object], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of PEP 610."""
    installed(tmp_path, origin, monkeypatch)
    written = shlex.split(installation.install_command("rehearse"))[-1]
    assert written == wanted
    assert str(Requirement(written)).startswith("trainstack[rehearse]")


@pytest.mark.parametrize(
    ("made_by", "command"),
    [
        ("uv-receipt.toml", ["uv", "tool", "install", "--reinstall"]),
        ("pipx_metadata.json", ["pipx", "install", "--force"]),
        ("pyvenv.cfg", [sys.executable, "-m", "pip", "install", "--force-reinstall"]),
    ],
)
def test_an_incomplete_installation_names_the_command_that_completes_it(
    made_by: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "make setup" in SetupError("x").fix, "of a checkout"
    monkeypatch.setattr(places, "CHECKOUT", None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / made_by).touch()
    fix = SetupError("x").fix
    assert "make" not in fix
    assert shlex.split(fix.split("`")[1])[: len(command)] == command
    assert SetupError("x", "y").fix == "y"


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ({}, "trainstack==2.0"),
        (
            {"url": "https://h/trainstack-1.2.3-py3-none-any.whl"},
            "trainstack @ https://h/trainstack-2.0-py3-none-any.whl",
        ),
        (
            {"url": "https://h/x.git", "vcs_info": {"vcs": "git", "commit_id": "a1"}},
            "trainstack @ git+https://h/x.git@TAG",
        ),
    ],
)
def test_another_version_comes_from_the_same_place(
    origin: dict[str, object], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, origin, monkeypatch)
    assert shlex.split(installation.install_command(version="2.0"))[-1] == wanted
    assert installation.once("2.0", "update") == "", "pip runs no other version"
    (tmp_path / "uv-receipt.toml").touch()
    words = shlex.split(installation.once("2.0", "update --dry-run"))
    assert (words[0], words[-4], words[-3:]) == ("uvx", wanted, ["trainstack", "update", "--dry-run"])


def test_an_empty_name_of_a_stack_does_not_choose_one() -> None:
    assert refused("destroy", "-s", "", "--rehearse", "--yes") == "stack-file-missing"
    assert refused("destroy", "--rehearse", "--yes") == "stack-not-chosen"
