"""The shape of the tree: short files and functions, folders that can be taken in, no circles of imports."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import pytest

from tools import run_tests

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (
    "trainstack", "stacks", "rehearsal", "plugin", "components", "policies", "agents", "infra",
    "smoke_training",
)  # fmt: skip
DECISIONS = Path("docs/adr")  # a numbered list, which only grows
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_FILES = 350, 60, 20


@cache
def tracked() -> tuple[Path, ...]:
    """The files of the checkout, relative to its root; empty where there is no git to ask."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    return tuple(Path(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file())


def python() -> Iterator[Path]:
    return (path for path in tracked() if path.suffix == ".py")


@pytest.fixture(autouse=True)
def _checkout() -> None:
    if not tracked():
        pytest.skip("not a git checkout")


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lines = {path: len((ROOT / path).read_text().splitlines()) for path in python()}
    assert {str(path): count for path, count in lines.items() if count > MOST_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{path}:{node.lineno} {node.name}": length
        for path in python()
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_every_file_name_is_a_plain_word() -> None:
    """As a home that was made from the text of an object: with blanks, brackets, an address."""
    assert [str(path) for path in tracked() if not re.fullmatch(r"[\w./@+-]+", str(path))] == []


def test_no_folder_holds_more_than_a_reader_can_take_in() -> None:
    files = Counter(path.parent for path in tracked() if path.parts[0] != "tests")
    del files[DECISIONS]
    crowded = {str(folder): count for folder, count in files.items() if count > MOST_FILES and folder.parts}
    assert crowded == {}


def test_no_test_that_needs_the_machine_for_itself_is_left_out() -> None:
    folders = [f"tests/{folder}" for folder in run_tests.ALONE]
    marked = [path for path in python() if re.search(r"pytest\.mark\.alone\b", (ROOT / path).read_text())]
    assert len(marked) > 5
    assert [str(path) for path in marked if not any(path.is_relative_to(one) for one in folders)] == []


def test_nothing_of_the_program_hides_a_module_of_python() -> None:
    # Pulumi starts the program in its folder, in which Python then looks first.
    names = {path.parts[1].removesuffix(".py") for path in python() if path.parts[0] == "stacks"}
    assert names & sys.stdlib_module_names == set()


def test_no_file_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph(*LAYERS)
    circles = [
        f"{module} -> {imported}"
        for module in sorted(graph.modules)
        for imported in graph.find_modules_directly_imported_by(module)
        if graph.find_shortest_chain(importer=imported, imported=module)
    ]
    assert circles == []


@pytest.mark.parametrize("sdk", ["pulumi_aws", "pulumi_gcp", "pulumi_kubernetes"])
def test_no_service_of_a_cloud_that_is_used_escapes_the_type_checker(sdk: str) -> None:
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (checked,) = (one["module"] for one in overrides if one.get("follow_imports") == "normal")
    trees = [ast.parse(text) for path in python() if sdk in (text := (ROOT / path).read_text())]
    used = {service for tree in trees for service in _services(tree, sdk)}
    assert len(used) > 3
    assert used == {name.split(".")[1] for name in checked if re.fullmatch(rf"{sdk}\.\w+\.\*", name)}


def _services(tree: ast.Module, sdk: str) -> Iterator[str]:
    """The services of an SDK that a module reads: `aws.ec2`, or by `from pulumi_aws.s3 import` and so on."""
    nodes = list(ast.walk(tree))
    imported = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names = {alias.asname or alias.name for alias in imported if alias.name == sdk}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{sdk}."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == sdk:
            yield from filter(_is_service, (alias.name for alias in node.names))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            yield from filter(_is_service, [node.attr])


def _is_service(name: str) -> bool:
    """Whether a name at the top of an SDK is neither a class nor a function."""
    return not name[0].isupper() and not name.startswith("get_")
