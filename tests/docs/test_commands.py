"""Commands in Markdown pages exist and parse; those of README and tutorials are also run by a test."""

import argparse
import functools
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from infra.errors import UserError
from smoke_training.cli import COMMANDS
from tests.trainstack.cli.command import run
from trainstack import accept, references, render
from trainstack.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tutorials", "how-to", "reference", "explanation")
PAGES = [
    ROOT / "README.md",
    *(page for one in FOLDERS for page in sorted((ROOT / "docs" / one).glob("*.md"))),
    *sorted((ROOT / "docs" / "runbooks").glob("*/*.md")),
]
TUTORIALS = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```(?:console|sh|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Names that pages use for a stack of the reader.
NAMES = {"lab": "small-eks-aws", "STACK": "dev-aws"}
# Run by `test_an_offline_command_runs`: no cloud, no rehearsal.
OFFLINE = {("cost",), ("explain",), ("advise",), ("advise", "own"), ("smoke", "plan")}
# Test, or folder of tests, that runs a command with a rehearsal or a recorded cloud and contains its name.
RUN_BY = {
    ("audit",): "tests/rehearsal/runs/life.py",
    ("bootstrap",): "tests/trainstack/bootstrap",
    ("collect",): "tests/trainstack/cli",
    ("destroy",): "tests/rehearsal/runs/life.py",
    ("handover",): "tests/trainstack/handover",
    ("kubeconfig",): "tests/trainstack/cli",
    ("new",): "tests/trainstack/stamp",
    ("open",): "tests/trainstack/cli",
    ("preflight",): "tests/trainstack/preflight",
    ("preview",): "tests/rehearsal/runs/test_shipped_stacks.py",
    ("queue",): "tests/cluster/queues",
    ("rehearse", "env"): "tests/rehearsal/runs/life.py",
    ("rehearse", "login"): "tests/rehearsal/runs/life.py",
    ("report",): "tests/trainstack/cli",
    ("run",): "tests/rehearsal/runs/small.py",
    ("runs",): "tests/rehearsal/runs/test_small_stack.py",
    ("slurm", "ledger"): "tests/slurm",
    ("slurm", "queue"): "tests/slurm",
    ("status",): "tests/rehearsal/runs/life.py",
    ("stop",): "tests/trainstack/cli/jobs",
    ("up",): "tests/rehearsal/runs/life.py",
}
# Programs of others. `pulumi` is run by the lives of stacks, what handles files by the audit below.
EXTERNAL = {
    "aws",
    "cd",
    "cp",
    "docker",
    "eval",
    "gcloud",
    "export",
    "git",
    "gke-gcloud-auth-plugin",
    # Its objects are those of tests/cluster/queues/test_first_job.py.
    "kubectl",
    "pulumi",
    "sha256sum",
    "source",
    "uv",
}
AUDIT = ROOT / "docs" / "tutorials" / "audit.md"
EXITS = (3, 0, 3, 3, 3, 0, 5, 3, 0, 0)


class Command(NamedTuple):
    """A command of a page."""

    page: Path
    words: tuple[str, ...]
    output: str | None = None
    """The file to which its output is redirected."""

    @property
    def path(self) -> tuple[str, ...]:
        """The subcommand, such as `rehearse env`."""
        command, found = _tree(), []
        for word in self.words[1:]:
            if word not in getattr(command, "commands", {}):
                break
            command = command.commands[word]
            found.append(word)
        return tuple(found)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {shlex.join(self.words)}"


def commands(text: str, page: Path) -> Iterator[Command]:
    """The commands of all console blocks, also those joined by `&&`."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if page not in TUTORIALS and "trainstack " not in line:
                continue
            words = shlex.split(line.removeprefix("$ "), comments=True)
            while words:
                size = words.index("&&") if "&&" in words else len(words)
                part, words = words[:size], words[size + 1 :]
                while part and re.fullmatch(r"[A-Z_0-9]+=.*", part[0]):
                    part = part[1:]
                redirected = part.index(">") if ">" in part else len(part)
                if part:
                    output = part[redirected + 1] if redirected < len(part) else None
                    yield Command(page, tuple(part[:redirected]), output)


def of(pages: Sequence[Path]) -> list[Command]:
    return [command for page in pages for command in commands(page.read_text(), page)]


def trainstack() -> list[Command]:
    """Commands of ours, in all pages."""
    return [command for command in of(PAGES) if command.words[0] == "trainstack"]


@functools.cache
def _tree() -> Any:
    return typer.main.get_command(app)


@pytest.mark.parametrize("command", trainstack(), ids=str)
def test_a_command_exists_with_its_options(command: Command) -> None:
    path = command.path
    assert path, f"no such command: {command}"
    arguments = list(command.words[1 + len(path) :])
    if path[0] == "smoke":
        parser = argparse.ArgumentParser()
        known = (*COMMANDS, render, accept, references)
        next(one for one in known if path[1] == one.NAME).add(parser)
        parser.parse_args(arguments)
        return
    found = _tree()
    for word in path:
        found = found.commands[word]
    try:
        found.make_context(path[-1], arguments)
    except UserError as refused:  # in the folder of a client there is one stack
        assert [one.code for one in refused.problems] == ["stack-not-chosen"]


@pytest.mark.parametrize("command", of(TUTORIALS), ids=str)
def test_a_command_of_a_tutorial_is_run_by_a_test(command: Command) -> None:
    program = command.words[0]
    if program == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert command.words[1] in targets
    elif program == "trainstack":
        if command.path not in OFFLINE:
            tests = ROOT / RUN_BY[command.path]
            files = [tests] if tests.is_file() else tests.rglob("*.py")
            assert any(f'"{command.path[-1]}"' in file.read_text() for file in files)
    else:
        assert program in EXTERNAL


@pytest.mark.parametrize("command", [one for one in trainstack() if one.path in OFFLINE], ids=str)
def test_an_offline_command_runs(command: Command) -> None:
    words = [NAMES.get(word, word) for word in command.words[1:]]
    assert run(*words)[0] == 0


def test_the_audit_runs_as_its_tutorial_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = AUDIT.read_text().partition("\n## 6.")[0]
    exits = []
    for command in commands(text, AUDIT):
        match command.words:
            case "cd", folder:
                if (ROOT / folder).is_dir():
                    shutil.copytree(ROOT / folder, tmp_path / "audit")
                    folder = str(tmp_path / "audit")
                monkeypatch.chdir(folder)
            case "trainstack", *words:
                code, output = run(*words)
                exits.append(code)
                if command.output:
                    Path(command.output).write_text(output)
            case words:
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    assert tuple(exits) == EXITS
