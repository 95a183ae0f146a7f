"""Effects of changed files on the stacks of a client: values of specs and prices, before and after."""

import datetime
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import cost
from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.load import load_deployed, stacks

SPECS = ("Pulumi.yaml", "Pulumi.*.yaml", "clients/*.yaml", "policies/*.yaml")
"""Files that decide what a stack is, and how it is judged."""


@dataclass(frozen=True)
class Price:
    """US dollars per month."""

    minimum_usd: float
    expected_usd: float
    maximum_usd: float


@dataclass(frozen=True)
class StackEffect:
    """A stack before and after; None where it is in one of the two alone, or cannot be loaded."""

    stack: str
    values: Sequence[tuple[str, Any, Any]]
    """Path, value before and value after; None where there is none."""
    before: Price | None
    after: Price | None
    broken: Sequence[Problem] = ()
    """Rules that the stack breaks after the change, and not before."""


def effects(folder: Path, changes: Mapping[str, str | None], today: datetime.date) -> list[StackEffect]:
    """The effects on every stack of the folder that they concern."""
    with changed_copy(folder, {}) as before, changed_copy(folder, changes) as after:
        names = sorted({*stacks(before), *stacks(after)})
        found = [_effect(name, before, after, today) for name in names]
    return [one for one in found if one.values or one.broken or one.before != one.after]


@contextmanager
def changed_copy(folder: Path, changes: Mapping[str, str | None]) -> Iterator[Path]:
    """A copy of the files that decide what the stacks are, with the changes, within the block."""
    with tempfile.TemporaryDirectory(prefix="trainstack-") as name:
        copy = Path(name)
        for path in (path for pattern in SPECS for path in folder.glob(pattern)):
            target = copy / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        for file, text in changes.items():
            if text is None:
                (copy / file).unlink(missing_ok=True)
            else:
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                (copy / file).write_text(text, encoding="utf-8")
        yield copy


def _effect(stack: str, before: Path, after: Path, today: datetime.date) -> StackEffect:
    (old, known), (new, found) = (_loaded(stack, folder) for folder in (before, after))
    own = {(one.code, one.path) for one in known}
    broken = tuple(one for one in found if (one.code, one.path) not in own)
    prices = (_price(old, today) if old else None, _price(new, today) if new else None)
    return StackEffect(stack, _values(old, new) if old and new else (), *prices, broken)


def _loaded(stack: str, folder: Path) -> tuple[StackSpec | None, tuple[Problem, ...]]:
    """The spec, and what is wrong with it; nothing without a file."""
    if not (folder / f"Pulumi.{stack}.yaml").exists():
        return None, ()
    try:
        return load_deployed(stack, folder)
    except UserError as error:
        return None, error.problems


def _values(old: StackSpec, new: StackSpec) -> list[tuple[str, Any, Any]]:
    before, after = (dict(_flat("", spec.model_dump(mode="json"))) for spec in (old, new))
    return [
        (path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def _price(spec: StackSpec, today: datetime.date) -> Price:
    found = cost.estimate(spec, today)
    return Price(found.minimum, found.expected, found.maximum)


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), one)
    elif (
        isinstance(value, list) and value and all(isinstance(one, Mapping) and "name" in one for one in value)
    ):
        for one in value:
            yield from _flat(f"{path}[{one['name']}]", one)
    else:
        yield path, value
