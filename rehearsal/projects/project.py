"""A Pulumi project on disk: settings, program and stack files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from rehearsal.projects.stack_file import load

_FILES = ("Pulumi.yaml", "Pulumi.yml")
_STACK_FILE = re.compile(r"Pulumi\.(.+)\.ya?ml")
_DEFAULT_STACK = "dev"
PYTHON = "python"
LANGUAGES = (PYTHON, "nodejs", "go")


@dataclass(frozen=True)
class PulumiProject:
    """A project in `folder`; `entry` is its `main`: the program's folder or file."""

    name: str
    folder: Path
    entry: Path
    language: str
    settings: Mapping[str, Any]
    config_folder: Path

    @property
    def program(self) -> Path:
        """Folder of the program's modules."""
        return self.entry if self.entry.is_dir() else self.entry.parent

    def stacks(self) -> dict[str, Path]:
        """Stack name -> stack file."""
        files = sorted(self.config_folder.iterdir()) if self.config_folder.is_dir() else []
        found = {_STACK_FILE.fullmatch(file.name): file for file in files}
        return {match.group(1): file for match, file in found.items() if match}

    def choose(self, stack: str) -> str:
        """The stack to use: the given one, else the only one, else `dev`. Raises UserError."""
        known = self.stacks()
        if stack or not known or _DEFAULT_STACK in known:
            return stack or _DEFAULT_STACK
        if len(known) > 1:
            fix = f"Choose one with --stack: {', '.join(known)}."
            rule, code = "the project has several stacks", "project-has-several-stacks"
            raise UserError([Problem("--stack", None, rule, fix, code=code)])
        return next(iter(known))


def read(folder: Path) -> PulumiProject:
    """The project in a folder. Raises UserError without one, or for a language that is not rehearsed."""
    folder = folder.resolve()
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if file is None:
        fix = "Give the folder of a Pulumi project: the one with its Pulumi.yaml."
        raise UserError([Problem("DIR", str(folder), "has no Pulumi.yaml", fix, code="no-pulumi-project")])
    settings = load(file)
    name, runtime = settings.get("name"), settings.get("runtime")
    language = runtime.get("name") if isinstance(runtime, dict) else runtime
    problems = []
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]{1,100}", name):
        rule, fix = "is not a project name", "Use letters, digits, - _ ."
        problems.append(Problem(f"{file}: name", name, rule, fix, code="invalid-project-name"))
    if language not in LANGUAGES:
        rule, fix = "is no language of a rehearsal", f"Programs in {', '.join(LANGUAGES)} can be rehearsed."
        problems.append(Problem(f"{file}: runtime", language, rule, fix, code="project-language-unknown"))
    if problems:
        raise UserError(problems)
    entry = (folder / str(settings.get("main") or ".")).resolve()
    config = (folder / str(settings.get("stackConfigDir") or settings.get("config_dir") or ".")).resolve()
    return PulumiProject(str(name), folder, entry, str(language), settings, config)
