"""Somebody else's Pulumi project in a rehearsal: run from where it lies, written to only below the home.

The engine works in `<home>/projects/<name>`: there lie a copy of the project file, whose `main` leads to the
program, and copies of the stack files. So whatever the engine notes down (a salt, a setting) stays there.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError
from rehearsal.stack_file import PROVIDER_KEYS

_FILES = ("Pulumi.yaml", "Pulumi.yml")
_STACK_FILE = re.compile(r"Pulumi\.(.+)\.ya?ml")
_DEFAULT_STACK = "dev"


@dataclass(frozen=True)
class Project:
    """A project as it lies in `folder`; `program` is the folder that holds its `__main__.py`."""

    name: str
    folder: Path
    program: Path
    settings: Mapping[str, Any]
    config_folder: Path

    def stacks(self) -> dict[str, Path]:
        """Stack name -> stack file."""
        files = sorted(self.config_folder.iterdir()) if self.config_folder.is_dir() else []
        found = {_STACK_FILE.fullmatch(file.name): file for file in files}
        return {match.group(1): file for match, file in found.items() if match}

    def choose(self, stack: str) -> str:
        """The stack that is meant: the given one, else the only one, else `dev`. Raises UserError."""
        known = self.stacks()
        if stack or not known or _DEFAULT_STACK in known:
            return stack or _DEFAULT_STACK
        if len(known) > 1:
            fix = f"Choose one with --stack: {', '.join(known)}."
            raise UserError([Problem("--stack", None, "the project has several stacks", fix)])
        return next(iter(known))


def read(folder: Path) -> Project:
    """The project in a folder. Raises UserError when there is none that can be rehearsed."""
    folder = folder.resolve()
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if file is None:
        fix = "Give the folder of a Pulumi project: the one with its Pulumi.yaml."
        raise UserError([Problem("DIR", str(folder), "no Pulumi.yaml lies there", fix)])
    settings = load(file)
    name, runtime = settings.get("name"), settings.get("runtime")
    language = runtime.get("name") if isinstance(runtime, dict) else runtime
    problems = []
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]{1,100}", name):
        problems.append(Problem(f"{file}: name", name, "is no project name", "Use letters, digits, - _ ."))
    if language != "python":
        fix = "Only Python programs can be rehearsed."
        problems.append(Problem(f"{file}: runtime", language, "is no Python project", fix))
    if problems:
        raise UserError(problems)
    program = (folder / str(settings.get("main") or ".")).resolve()
    config = (folder / str(settings.get("stackConfigDir") or settings.get("config_dir") or ".")).resolve()
    return Project(str(name), folder, program if program.is_dir() else program.parent, settings, config)


@dataclass(frozen=True)
class Workspace:
    """Where the engine works on a project; `unreadable` are secret settings of the stack file."""

    folder: Path
    stack: str
    unreadable: tuple[str, ...]
    environment: Mapping[str, str]


def prepare(
    project: Project, stack: str, home: Path, pulumi: str, environment: Mapping[str, str]
) -> Workspace:
    """Make or renew the copies, and the stack in the rehearsal's backend.

    Raises RuntimeError with the CLI's words when the stack cannot be made.
    """
    folder = home / "projects" / project.name
    folder.mkdir(parents=True, exist_ok=True)
    dropped = {"main", "stackConfigDir", "config_dir", "backend", "runtime"}
    settings = {key: value for key, value in project.settings.items() if key not in dropped}
    entry = (project.folder / str(project.settings.get("main") or ".")).resolve()
    # No `virtualenv` and no tool chain: the program runs with the SDKs that the rehearsal knows.
    _write(folder / "Pulumi.yaml", {**settings, "runtime": "python", "main": str(entry)})
    environment = {
        **environment,
        "PULUMI_STACK": stack,
        "PYTHONPYCACHEPREFIX": str(home / "pycache"),  # compiled modules stay out of the project, too
    }
    unreadable = _renew(project.stacks().get(stack), folder / f"Pulumi.{stack}.yaml")
    command = [pulumi, "stack", "select", stack, "--create", "--non-interactive"]
    made = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, check=False, capture_output=True, text=True
    )
    if made.returncode:
        raise RuntimeError(f"the rehearsal's stack cannot be made: {made.stderr.strip()}")
    return Workspace(folder, stack, unreadable, environment)


def load(file: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping. Raises UserError."""
    try:
        content = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        raise UserError([Problem(str(file), None, "cannot be read", f"{error}")]) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UserError([Problem(str(file), None, "holds no mapping", "Write `key: value` lines.")])
    return content


def _renew(source: Path | None, copy: Path) -> tuple[str, ...]:
    """Take over what the project's stack file says now; what was set in the rehearsal only is kept.

    Secrets that were encrypted elsewhere cannot be read here: they are left out, and their names returned,
    unless the rehearsal was given a value of its own.
    """
    kept = load(copy) if copy.exists() else {}
    snapshot = copy.with_suffix(".source")
    before = load(snapshot) if snapshot.exists() else {}
    given = load(source) if source else {}
    secrets = {key for key, value in (given.get("config") or {}).items() if _is_encrypted(value)}
    plain = {key: value for key, value in (given.get("config") or {}).items() if key not in secrets}
    own = {
        key: value
        for key, value in (kept.get("config") or {}).items()
        if _is_own(key, value, before.get("config") or {}, plain, secrets)
    }
    provider = {key: kept[key] for key in PROVIDER_KEYS if key in kept}
    others = {key: value for key, value in given.items() if key not in (*PROVIDER_KEYS, "config")}
    _write(copy, {**provider, **others, "config": {**plain, **own}})
    if source:
        shutil.copyfile(source, snapshot)
    else:
        snapshot.unlink(missing_ok=True)
    return tuple(sorted(secrets - own.keys()))


def _is_own(
    key: str, value: Any, before: Mapping[str, Any], plain: Mapping[str, Any], secrets: set[str]
) -> bool:
    """Whether a setting was made in the rehearsal, not taken over (`before`) from the project's file."""
    if key in plain:
        return bool(before.get(key) == plain[key] and value != plain[key])
    return key in secrets or key not in before


def _is_encrypted(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(_is_encrypted(item) for item in value.values())
    return isinstance(value, list) and any(_is_encrypted(item) for item in value)


def _write(file: Path, content: Mapping[str, Any]) -> None:
    draft = file.with_suffix(".tmp")
    with draft.open("w", encoding="utf-8") as out:
        YAML(typ="safe").dump(dict(content), out)
    draft.chmod(0o600)
    draft.replace(file)
