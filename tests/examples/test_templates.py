"""Checks for every template."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES

TEMPLATES = {"finetune": "train.py", "ddp": "train.py", "evaluate": "evaluate.py", "sweep": "sweep.py"}


def test_there_are_no_others() -> None:
    """Besides the programs of `components`, which `tests/rehearsal/projects/test_languages.py` runs."""
    found = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert found == {*TEMPLATES, "components"}


def test_a_module_that_several_have_is_the_same_in_all() -> None:
    texts: dict[str, set[bytes]] = defaultdict(set)
    for path in EXAMPLES.glob("*/*.py"):
        if path.name not in TEMPLATES.values():
            texts[path.name].add(path.read_bytes())
    assert {name: len(found) for name, found in texts.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_a_page_with_its_command(name: str) -> None:
    title, text = (EXAMPLES / name / "README.md").read_text().split("\n", 1)
    assert title == f"# {name}" and f"trainstack run examples/{name}" in text


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_needs_torch_alone(name: str) -> None:
    """And of what a job has besides only what it asks for when it is there."""
    folder = EXAMPLES / name
    own = {path.stem for path in folder.glob("*.py")}
    assert not (folder / "requirements.txt").exists()
    imported = {module for path in folder.glob("*.py") for module in _imported(path)}
    assert imported - own - sys.stdlib_module_names == {"torch"}


def _imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}
