"""Dependencies of a Python program that are missing or have other versions than required."""

import ast
import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def missing_modules(program: Path, folders: Sequence[Path] = ()) -> dict[str, str]:
    """Module -> file of the program that imports it, for modules that are neither installed nor part of it.

    `folders` have further packages, such as SDKs that `pulumi package add` generated (`local_packages`).
    Followed from `__main__.py` through the program's own modules; an import inside `try` is optional.
    """
    missing: dict[str, str] = {}
    seen: set[Path] = set()
    start = program / "__main__.py"
    todo = [start] if start.is_file() else sorted(program.glob("*.py"))
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        for name in _imports(file):
            own = _own(program, file, name)
            if own:
                todo += [found for found in own if found not in seen]
            elif (top := name.partition(".")[0]) and not _installed(top, folders):
                missing.setdefault(top, str(file.relative_to(program)))
    return missing


def local_packages(project: Path) -> list[Path]:
    """Folders of packages that the project's requirements name, which a rehearsal does not install."""
    file = project / "requirements.txt"
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    found = (project / re.sub(r"^(-e|--editable)\s+", "", line.strip()) for line in lines if line.strip())
    return [folder.resolve() for folder in found if folder.is_dir()]


def describe(folders: Iterable[str], target: Path) -> Path:
    """Write the metadata that generated SDKs read of themselves, as an installer does; returns `target`."""
    for file in (found for folder in folders for found in Path(folder).glob("*/pulumi-plugin.json")):
        name, version = file.parent.name, json.loads(file.read_text(encoding="utf-8")).get("version", "0.0.0")
        metadata = target / f"{name}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True, exist_ok=True)
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    return target


def other_versions(project: Path) -> list[str]:
    """Requirements that the installed packages do not meet, such as `pulumi-aws>=6,<7 (here 7.51.1)`."""
    found = []
    for requirement in requirements(project / "requirements.txt"):
        try:
            here = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if not requirement.specifier.contains(here, prereleases=True):
            found.append(f"{requirement.name}{requirement.specifier} (here {here})")
    return found


def distribution(project: Path, module: str) -> str:
    """The package that a module belongs to, if the project's requirements name it; else the module's name."""
    for requirement in requirements(project / "requirements.txt"):
        if canonicalize_name(requirement.name) == canonicalize_name(module):
            return requirement.name
    return module.replace("_", "-")


def requirements(file: Path) -> Iterator[Requirement]:
    """The requirements of a file and of those that it includes; other lines are skipped."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        included = re.match(r"(?:-r|--requirement)[ =]?(\S+)", text)
        if included and (file.parent / included.group(1)) != file:
            yield from requirements(file.parent / included.group(1))
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is None or requirement.marker.evaluate():
            yield requirement


def _imports(file: Path) -> Iterator[str]:
    """Modules that a file imports when it runs; relative ones keep their dots."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # Python itself reports it better
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
            if node.level and not node.module:
                yield from (f"{'.' * node.level}{alias.name}" for alias in node.names)
        # A function may never be called, and a `try` handles the absence.
        if not isinstance(node, ast.Try | ast.FunctionDef | ast.AsyncFunctionDef):
            todo += ast.iter_child_nodes(node)


def _own(program: Path, file: Path, name: str) -> list[Path]:
    bare = name.lstrip(".")
    level = len(name) - len(bare)
    base = program if not level else file.parents[level - 1]
    path = base.joinpath(*bare.split(".")) if bare else base
    found = [path.with_suffix(".py"), path / "__init__.py"]
    first = base / bare.partition(".")[0]
    files = [one for one in found if one.is_file()]
    if not files and not level and (first.is_dir() or first.with_suffix(".py").is_file()):
        return [one for one in (first / "__init__.py", first.with_suffix(".py")) if one.is_file()] or [file]
    return files or ([file] if level else [])


def _installed(module: str, folders: Sequence[Path]) -> bool:
    if any((folder / module).is_dir() for folder in folders):
        return True
    if module in sys.builtin_module_names or module in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
