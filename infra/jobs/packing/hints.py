"""Warnings about a folder: it is sent, but a part of it does not work in a job as on its machine (pure)."""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping

from infra.errors import Problem
from infra.jobs.packing.names import shown
from infra.jobs.packing.requirement_files import REQUIREMENTS

# Of a pointer (git-lfs docs/spec.md).
_POINTER = b"version https://git-lfs.github.com/spec/v1"
_POINTER_BYTES = 1024
_SUBMODULE = re.compile(rb"(?m)^\s*path\s*=\s*(.+?)\s*$")
_EXPORTS = {
    "uv.lock": "uv export --no-emit-project --no-hashes -o requirements.txt",
    "poetry.lock": "poetry export -o requirements.txt",
    "Pipfile.lock": "pipenv requirements > requirements.txt",
    "Pipfile": "pipenv requirements > requirements.txt",
    "environment.yml": "pip list --format=freeze > requirements.txt",
    "environment.yaml": "pip list --format=freeze > requirements.txt",
    "conda.yaml": "pip list --format=freeze > requirements.txt",
    "setup.py": "echo . > requirements.txt",
}


def hints(contents: Mapping[str, bytes], empty: Collection[str], script: str) -> Iterator[Problem]:
    """All warnings about the files of a pack and its empty folders."""
    for path, content in contents.items():
        if len(content) < _POINTER_BYTES and content.startswith(_POINTER):
            rule, fix = "is a pointer of Git LFS, not the file", "Run git lfs pull."
            yield Problem(shown(path), None, rule, fix, code="file-is-lfs-pointer")
        first = content[:256].partition(b"\n")[0]
        if first.startswith(b"#!") and first.endswith(b"\r") and path != script:
            rule, fix = (
                "has line ends of Windows (CRLF): its first line names no program",
                f"sed -i 's/\\r$//' {shown(path)}",
            )
            yield Problem(shown(path), None, rule, fix, code="program-line-ends")
    for name in _SUBMODULE.findall(contents.get(".gitmodules", b"")):
        path = name.decode("utf-8", "surrogateescape")
        if path in empty:
            rule, fix = "is a submodule that is not checked out", "Run git submodule update --init."
            yield Problem(shown(path), None, rule, fix, code="submodule-empty")
    if REQUIREMENTS not in contents:
        yield from _packages(contents, script)


def _packages(contents: Mapping[str, bytes], script: str) -> Iterator[Problem]:
    beside = script.rpartition("/")[0] + f"/{REQUIREMENTS}"
    if beside in contents:
        fix = f"Add requirements.txt to the folder, with the line -r {shown(beside)}."
        rule = "is not installed: a job installs requirements.txt of the folder itself"
        yield Problem(shown(beside), None, rule, fix, code="packages-not-installed")
        return
    rule = "is not installed: a job installs requirements.txt alone"
    for name, command in _EXPORTS.items():
        if name in contents:
            yield Problem(name, None, rule, f"{command}.", code="packages-not-installed")
            return
    if "pyproject.toml" in contents and _has_packages(contents["pyproject.toml"]):
        fix = f"{_EXPORTS['setup.py']}."
        yield Problem("pyproject.toml", None, rule, fix, code="packages-not-installed")


def _has_packages(content: bytes) -> bool:
    """Return whether a project declares packages, or is one: many have settings of tools alone."""
    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    tool = found.get("tool")
    return "project" in found or (isinstance(tool, dict) and "poetry" in tool)
