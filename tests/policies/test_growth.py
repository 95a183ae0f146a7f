"""Work of rules grows linearly with the number of resources."""

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from policies.catalog import PolicyRule
from policies.evaluate import evaluate
from policies.rules import CATALOG
from policies.sources import state
from policies.stack import Stack
from tests.policies.recording.recordings import export, keys

FEW, MANY = 5, 20  # copies of every example
TOLERATED = 1.3  # times linear growth; that of a square is 4


def stack_of(copies: int, folder: Path) -> Stack:
    """Every example that passes, so many times, each under names of its own."""
    rows = []
    for key in keys():
        example = export(key, "pass")["deployment"]["resources"]
        objects = [(row.get("inputs") or {}).get("metadata") or {} for row in example]
        names = {*(row.get("id") for row in example), *(one.get("name") for one in objects)} - {None, ""}
        text = json.dumps(example).replace("urn:pulumi:pass", f"urn:pulumi:{key}.0")
        for number in range(copies):
            copy = text.replace(f"{key}.0:", f"{key}.{number}:")
            for name in names:
                copy = copy.replace(json.dumps(name), json.dumps(f"{name}-{number}"))
            rows += json.loads(copy)
    path = folder / f"{copies}.json"
    path.write_text(json.dumps({"version": 3, "deployment": {"resources": rows}}))
    return Stack(state.read(path))


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stack, Stack]:
    folder = tmp_path_factory.mktemp("growth")
    return stack_of(FEW, folder), stack_of(MANY, folder)


def lines(rule: PolicyRule, stack: Stack) -> int:
    """Lines of Python that a rule runs to judge a stack."""
    count = 0

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        evaluate(stack, [rule])
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("rule", CATALOG.rules.values(), ids=lambda rule: rule.id)
def test_work_grows_with_the_number_of_resources(rule: PolicyRule, stacks: tuple[Stack, Stack]) -> None:
    few, many = (lines(rule, stack) for stack in stacks)
    assert many / few < TOLERATED * MANY / FEW
