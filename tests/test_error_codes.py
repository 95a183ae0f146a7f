"""Codes of problems are kebab-case words, which programs and tests can rely on."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.test_structure import LAYERS, ROOT, python


def problems() -> Iterator[tuple[Path, int, ast.expr]]:
    """The code of every `Problem(...)` in the product, with its place."""
    for path in python():
        if path.parts[0] not in LAYERS:
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem":
                (code,) = (one.value for one in node.keywords if one.arg == "code")
                yield path, node.lineno, code


def test_a_code_is_words_joined_by_hyphens() -> None:
    codes = [(path, line, code.value) for path, line, code in problems() if isinstance(code, ast.Constant)]
    assert len(codes) > 300
    form = r"[a-z0-9]+(-[a-z0-9]+){1,5}"
    assert [place for place in codes if not re.fullmatch(form, str(place[2]))] == []
