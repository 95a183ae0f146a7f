"""The lock of a client's folder: which version rendered its files from which answers, and their texts.

`.stamp/lock.yaml` has the version of the package, the answers and a digest of each rendered file;
`.stamp/base/` has the texts as they were rendered, the base of later three-way merges. Both are committed.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Literal

from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra import conflict_markers
from infra.errors import Problem, UserError
from trainstack import extras

FOLDER = ".stamp"
LOCK = f"{FOLDER}/lock.yaml"
BASE = f"{FOLDER}/base"
FORMAT = 1
_HEAD = "# Written by `trainstack new` and `trainstack update`: commit it, do not edit it.\n"
_RESTORE = f"Restore {FOLDER}/ from version control: `git checkout -- {FOLDER}`."
_ONE_SIDE = f"Take one side as a whole: `git checkout --ours {FOLDER}`; then run the update again."
_WIDTH = 4096  # no line is wrapped


@dataclass(frozen=True)
class Stamp:
    """A rendering: version of the package, answers, and texts by name in the client's folder."""

    version: str
    answers: Mapping[str, JsonValue]
    texts: Mapping[str, str]


class _Lock(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1]
    package: str
    answers: dict[str, JsonValue]
    files: dict[str, str]


def is_inside(name: str) -> bool:
    """True for the name of a file in the folder, in normal form."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and str(path) == name and path.parts != ()
    return inside and name.isprintable() and path.parts[0] != ".git"


def installed() -> str:
    """The version of the installed package."""
    return metadata.version("trainstack")


def files(stamp: Stamp) -> dict[str, str]:
    """The texts of lock and base, by name in the client's folder."""
    digests = {name: _digest(text) for name, text in sorted(stamp.texts.items())}
    content = {
        "format": FORMAT,
        "package": stamp.version,
        "answers": dict(stamp.answers),
        "files": digests,
    }
    yaml, text = YAML(pure=True), io.StringIO()
    yaml.width = _WIDTH
    yaml.dump(content, text)
    base = {f"{BASE}/{name}": stamp.texts[name] for name in digests}
    return {LOCK: _HEAD + text.getvalue(), **base}


def read(folder: Path) -> Stamp:
    """The last rendering of a client's folder.

    Raises UserError where the lock is missing, invalid, of a newer format or version than this package, or
    where it and the base differ.
    """
    lock = _parse(_text(folder, LOCK, "client-lock-missing"))
    problems = [*_version_problems(lock.package), *_name_problems(lock.files)]
    if problems:
        raise UserError(problems)
    texts = {}
    for name, digest in lock.files.items():
        try:
            text = _text(folder, f"{BASE}/{name}", "client-base-missing")
        except UserError as error:
            problems += error.problems
            continue
        texts[name] = text
        if _digest(text) != digest:
            rule = f"was edited: it differs from its digest in {LOCK}"
            problems.append(_problem(f"{BASE}/{name}", rule, code="client-base-edited"))
    problems += _surplus(folder, lock.files)
    if problems:
        raise UserError(problems)
    return Stamp(lock.package, lock.answers, texts)


def _parse(text: str) -> _Lock:
    try:
        content = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        if marked := conflict_markers.problem(LOCK, text):
            raise UserError([replace(marked, fix=_ONE_SIDE)]) from None
        rule = f"is not valid YAML: {' '.join(str(error).split())}"
        raise UserError([_problem(LOCK, rule, code="client-lock-invalid")]) from None
    if not isinstance(content, dict):
        rule = f"must be a mapping, not {type(content).__name__}"
        raise UserError([_problem(LOCK, rule, code="client-lock-invalid")])
    form = content.get("format")
    if isinstance(form, int) and form > FORMAT:
        rule = f"the lock is of format {form}; this version of trainstack reads up to {FORMAT}"
        fix = f"Install the version that wrote it: {extras.installation_of(str(content.get('package')))}."
        raise UserError([_problem(LOCK, rule, fix, code="client-lock-newer-format")])
    try:
        return _Lock.model_validate(content)
    except ValidationError as error:
        raise UserError(
            _problem(
                ".".join((LOCK, *map(str, fault["loc"]))), fault["msg"].lower(), code="client-lock-invalid"
            )
            for fault in error.errors()
        ) from None


def _version_problems(version: str) -> Iterator[Problem]:
    try:
        newer = Version(version) > Version(installed())
    except InvalidVersion:
        rule = f"{version!r} is not a version"
        yield _problem(f"{LOCK}.package", rule, code="client-lock-invalid")
        return
    if newer:
        rule = f"the files were rendered by {version}; {installed()} is installed, which is older"
        fix = f"Install that one: {extras.installation_of(version)}."
        yield _problem(f"{LOCK}.package", rule, fix, code="client-lock-newer")


def _name_problems(names: Mapping[str, str]) -> Iterator[Problem]:
    for name in names:
        if not is_inside(name) or name.startswith(f"{FOLDER}/"):
            rule = f"{name!r} is not the name of a rendered file"
            yield _problem(f"{LOCK}.files", rule, code="client-lock-invalid")


def _surplus(folder: Path, known: Mapping[str, str]) -> Iterator[Problem]:
    base = folder / BASE
    for path in sorted(base.rglob("*")):
        name = path.relative_to(base).as_posix()
        if not path.is_dir() and name not in known:
            yield _problem(f"{BASE}/{name}", f"is not in {LOCK}", "Remove it.", code="client-base-unknown")


def _text(folder: Path, name: str, missing: str) -> str:
    """A file of the folder, with the line ends of Unix. Links are refused: they lead elsewhere."""
    path = folder / name
    upwards = [path, *(one for one in path.parents if one != folder and folder in one.parents)]
    if any(one.is_symlink() for one in upwards):
        raise UserError([_problem(name, "is a link or lies below one", code="client-lock-invalid")])
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError([_problem(name, "is missing", code=missing)]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError([_problem(name, f"cannot be read: {error}", code="client-lock-invalid")]) from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _problem(path: str, rule: str, fix: str = _RESTORE, *, code: str) -> Problem:
    return Problem(path, None, rule, fix, code=code)
