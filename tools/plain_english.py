"""Check the language of the tree: banned words, first words of docstrings, names of public classes.

Run as `python tools/plain_english.py`; `--counts` prints the findings per folder instead of each one. Words
and exceptions, each with its reason, are in `plain_english.toml` beside this file.
"""

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).with_suffix(".toml")
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".j2", ".sh"}
CLOUDS = ("aws", "gcp")
NOT_PRODUCT = ("tests", "benchmarks", "examples", "tools")


class Finding(NamedTuple):
    """A place where the tree breaks a rule of its language."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every finding. The exit code is 1 when there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", action="store_true", help="findings per folder and kind")
    parser.add_argument("paths", nargs="*", type=Path, help="only findings below these paths")
    options = parser.parse_args(arguments)
    settings = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    found = [one for one in check(settings) if _is_below(one.path, options.paths)]
    if options.counts:
        counts = Counter((one.path.parts[0], one.text.split(":")[0]) for one in found)
        lines = [f"{folder:16} {count:5}  {kind}" for (folder, kind), count in sorted(counts.items())]
    else:
        lines = [str(one) for one in found]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if found else 0


def check(settings: Mapping[str, Any]) -> Iterator[Finding]:
    """All findings, by rule."""
    skipped = tuple(settings["skip"])
    paths = [path for path in _tracked() if not str(path).startswith(skipped)]
    for path in paths:
        yield from _words(path, settings)
    places: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    # One tree at a time: with all of them in memory, every collection of garbage goes through all.
    for path in [path for path in paths if path.suffix == ".py"]:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        yield from _first_words(path, tree, settings)
        for node in tree.body if path.parts[0] not in NOT_PRODUCT else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append((path, node.lineno))
    yield from _classes(places, settings)


def _words(path: Path, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Banned words, also as parts of identifiers."""
    words = settings["words"]
    banned = re.compile(rf"(?<![A-Za-z])({'|'.join(words)})(?![a-z])", re.IGNORECASE)
    allowed = [re.compile(pattern) for pattern in settings["allowed"].get(str(path), {}).get("patterns", ())]
    for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
        rest = line
        for pattern in allowed:
            rest = pattern.sub("", rest)
        for match in banned.finditer(rest):
            word = match.group(1).lower()
            yield Finding(path, number, f"word: `{word}`; write {words[word]}")


def _first_words(path: Path, tree: ast.Module, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Docstrings of all modules, and of the classes and functions of the product."""
    for node in [tree] if path.parts[0] in NOT_PRODUCT else ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = (ast.get_docstring(node) or "").split(" ")[0]
            if first in settings["first_words"]:
                line = 1 if isinstance(node, ast.Module) else node.lineno
                yield Finding(path, line, f"docstring: begins with `{first}`; say what it is or does")


def _classes(
    places: Mapping[str, Sequence[tuple[Path, int]]], settings: Mapping[str, Any]
) -> Iterator[Finding]:
    """Public classes of one name. The same concept for each cloud may share one."""
    for name, found in sorted(places.items()):
        concepts = {_without_cloud(path) for path, _ in found}
        if len(concepts) > 1 and name not in settings["same_name"]:
            others = ", ".join(str(path) for path, _ in found[1:])
            yield Finding(
                *found[0], f"class: `{name}` is also a class of {others}; rename, or give the reason"
            )


def _without_cloud(path: Path) -> str:
    return "/".join("CLOUD" if part in CLOUDS else part for part in path.parts)


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in listed.stdout.splitlines()]
    return [
        path for path in paths if (path.suffix in TEXT or path.name == "Makefile") and (ROOT / path).is_file()
    ]


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return not folders or any(path.is_relative_to(folder) for folder in folders)


if __name__ == "__main__":
    sys.exit(main())
