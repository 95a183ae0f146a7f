"""Files that messages and help name: as they can be opened, in a checkout and in an installation."""

import ast
import re
from pathlib import Path

import pytest

from infra import places
from infra.errors import Problem
from tests.test_structure import ROOT, tracked
from tests.wheel.built import files
from trainstack.preflight.answers import Answer, State

_NAMED = re.compile(r"(?<![\w/.-])(?:docs/[\w-]+/[\w/-]+\.md|stacks/[\w/.-]+\.(?:json|yaml))")
_SHIPPED = ("explanation/", "how-to/", "reference/", "tutorials/", "runbooks/")
# A decision is read in the repository.
_ELSEWHERE = "docs/adr/"


def named() -> dict[str, str]:
    """Files in texts of the product, with a file that has such a text."""
    found: dict[str, str] = {}
    for name in files():
        if name.endswith(".py") and not name.startswith("agents/"):
            for node in ast.walk(ast.parse((ROOT / name).read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= dict.fromkeys(_NAMED.findall(node.value), name)
    return {path: where for path, where in found.items() if not path.startswith(_ELSEWHERE)}


def test_every_file_that_a_text_names_exists_and_is_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    if not tracked():
        pytest.skip("not a git checkout")
    paths = named()
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    pages = [path for path in paths if path.startswith("docs/")]
    assert [path for path in pages if not path.removeprefix("docs/").startswith(_SHIPPED)] == []
    monkeypatch.setattr(places, "CHECKOUT", None)
    monkeypatch.setattr(places, "DOCUMENTS", ROOT)
    for path in paths:
        text = places.located(f"See {path}, or `{path}`.")
        assert text == f"See {ROOT / path}, or `{ROOT / path}`."
        assert places.located(text) == text, "a text is changed once"


def test_problems_and_answers_name_files_of_the_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fix = "See docs/how-to/jobs.md."
    assert Problem("x", None, "y", fix, code="z").fix == Answer("x", State.SHORT, "y", fix).fix == fix
    monkeypatch.setattr(places, "CHECKOUT", None)
    monkeypatch.setattr(places, "DOCUMENTS", tmp_path)
    installed = f"See {tmp_path}/docs/how-to/jobs.md."
    problem = Problem("x", None, "y", fix, code="z")
    assert problem.fix == problem.placed("here").fix == Answer("x", State.SHORT, "y", fix).fix == installed
