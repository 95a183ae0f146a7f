"""The script of a run: its path in the folder, and whether a job can run it (pure but for `locate`)."""

import ast
import codecs
import difflib
import io
import json
import os
import posixpath
import tokenize
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path

from infra.errors import Problem
from infra.jobs.packing.folder import FolderContents, left_out
from infra.jobs.packing.names import local, name_of, shown, text_of

SHELL = (".sh", ".bash")
_CONVERT = "Convert it (jupyter nbconvert --to script {name}), and remove its get_ipython() lines."
_NOTEBOOK = "is a notebook, which a job does not run"


def locate(folder: Path, script: str, found: FolderContents) -> str | Problem:
    """The path of the script among the files that the run takes, from `--script`."""
    path = text_of(script)
    for whole in (folder.absolute(), folder.resolve()):
        if Path(script).is_relative_to(whole):
            path = text_of(os.path.relpath(script, whole))
    path = posixpath.normpath(path)
    for name in (path, posixpath.normpath(path.replace("\\", "/"))):
        if name in found.files or found.links.get(name) in found.files:
            return name
    return _not_found(folder, path, found)


def _not_found(folder: Path, path: str, found: FolderContents) -> Problem:
    where, there = name_of(folder), local(folder, path)
    if path == ".." or path.startswith(("../", "/")):
        fix = "Name a file of the folder, by its path in the folder; or choose a folder that has both."
        return Problem("--script", path, "is outside of the folder", fix, code="script-outside-folder")
    if there.is_dir():
        own = f"{path}/__main__.py" if path != "." else "__main__.py"
        fix = f"Name its file: --script {own}." if own in found.files else _named(found)
        return Problem(where, None, f"{shown(path)} is a folder, not a script", fix, code="script-missing")
    if there.exists():
        reason = left_out(folder, path)
        if reason is not None:
            rule = f"{reason} leaves out the script {shown(path)}"
            fix = (
                f"Include it: add the line !{shown(path)} to .trainstackignore, or rename a folder above it."
            )
            return Problem(where, None, rule, fix, code="script-ignored")
        rule, fix = f"the script {shown(path)} cannot be packed", "See the other problems."
        return Problem(where, None, rule, fix, code="script-missing")
    near = _near(path, found.files)
    fix = f"Did you mean --script {shown(near)}?" if near else _named(found)
    return Problem(where, None, f"has no script {shown(path)}", fix, code="script-missing")


def _near(path: str, files: Collection[str]) -> str | None:
    """The file that is meant: as a module, with other capitals, or with a folder too many."""
    module = f"{path.replace('.', '/')}.py"
    same = [one for one in files if one.lower() == path.lower() or one == path.partition("/")[2]]
    if module in files:
        return module
    if same:
        return same[0]
    scripts = [one for one in files if one.endswith((".py", *SHELL))]
    near = difflib.get_close_matches(path, scripts, n=1, cutoff=0.8)
    return near[0] if near else None


def _named(found: FolderContents) -> str:
    scripts = sorted(
        (path for path in found.files if path.endswith((".py", *SHELL))),
        key=lambda one: (one.count("/"), one),
    )
    if scripts:
        return f"Name one with --script: {', '.join(map(shown, scripts[:5]))}."
    notebooks = sorted(path for path in found.files if path.endswith(".ipynb"))
    return _CONVERT.format(name=shown(notebooks[0])) if notebooks else "Choose the folder of your script."


def problems(path: str, content: bytes) -> Iterator[Problem]:
    """Reasons for which a job cannot run the script."""
    place = shown(path)
    if path.endswith(".ipynb") or _is_notebook(content):
        yield Problem(place, None, _NOTEBOOK, _CONVERT.format(name=place), code="script-is-notebook")
    elif path.endswith(SHELL):
        yield from _of_shell(place, content)
    elif path.endswith(".py") or (content.startswith(b"#!") and b"python" in content.partition(b"\n")[0]):
        yield from _of_python(path, content)
    else:
        rule = "is neither a Python nor a shell script (.py, .sh, .bash)"
        fix = "Name it so, or start it from a shell script."
        yield Problem(place, None, rule, fix, code="script-not-runnable")


def _is_notebook(content: bytes) -> bool:
    if not content.lstrip().startswith(b"{") or b'"nbformat"' not in content:
        return False
    try:
        return "cells" in json.loads(content)
    except ValueError:
        return False


def _of_shell(place: str, content: bytes) -> Iterator[Problem]:
    if b"\0" in content or content.startswith(codecs.BOM_UTF8):
        rule, fix = (
            "has a byte order mark or is in UTF-16, which bash cannot read",
            "Save it as UTF-8 without mark.",
        )
        yield Problem(place, None, rule, fix, code="script-encoding")
    elif b"\r\n" in content:
        rule = "has line ends of Windows (CRLF), of which bash makes part of each command"
        fix = f"Convert it (sed -i 's/\\r$//' {place}); in git, add `*.sh text eol=lf` to .gitattributes."
        yield Problem(place, None, rule, fix, code="script-line-ends")
    elif not content.strip():
        yield _empty(place)


def _of_python(path: str, content: bytes) -> Iterator[Problem]:
    place = shown(path)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        encoding = ""
    if not encoding or b"\0" in content:
        rule = "is not in UTF-8, and does not declare another encoding"
        yield Problem(place, None, rule, "Save it as UTF-8.", code="script-encoding")
        return
    tree = _parsed(content)
    if tree is None:
        return
    if not tree.body:
        yield _empty(place)
    levels = _relative_imports(tree)
    if levels and module_of(path, content) == "":
        rule = "has a relative import, which needs a folder above the script as package"
        fix = "Write it absolutely (from model import ...), or move the script into a folder."
        yield Problem(place, None, rule, fix, code="script-imports-relatively")


def _empty(place: str) -> Problem:
    fix = "Write the training into it, or name another with --script."
    return Problem(
        place, None, "has no statement: the run would complete without training", fix, code="script-empty"
    )


def module_of(path: str, content: bytes) -> str:
    """The module as which `python -m` must run a script with relative imports; "" for any other script."""
    tree = _parsed(content) if path.endswith(".py") else None
    names = path.removesuffix(".py").split("/")
    levels = _relative_imports(tree) if tree is not None else []
    if not levels or max(levels) >= len(names) or not all(name.isidentifier() for name in names):
        return ""
    return ".".join(names)


def syntax_warning(path: str, content: bytes) -> Iterator[Problem]:
    """A warning where this machine's Python cannot read the script: the job's version may be able to."""
    if path.endswith(SHELL):
        return
    if b"get_ipython()" in content:
        rule, fix = "calls get_ipython(), which only notebooks have", "Remove these lines."
        yield Problem(shown(path), None, rule, fix, code="script-needs-notebook")
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(content)
    except (SyntaxError, ValueError) as error:
        rule = f"cannot be read by the Python of this machine: {error}"
        yield Problem(shown(path), None, rule, "Check the line.", code="script-syntax")
    except (RecursionError, MemoryError):  # too deep for this parser, not necessarily for Python
        return


def _parsed(content: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _relative_imports(tree: ast.Module) -> list[int]:
    """Levels of the relative imports that run first; those in `try` have an alternative."""
    return [node.level for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
