"""Effects of changed files on the stacks of a client: values of specs and prices, before and after."""

import datetime
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infra import cost
from infra.errors import Problem, UserError
from infra.stackspec import StackSpec
from infra.stackspec.load import load_deployed, load_file, stacks
from rehearsal.projects.project import read
from trainstack.stamp import policy_sources
from trainstack.stamp.verdict import Judging, StackVerdict

SPECS = ("Pulumi.yaml", "Pulumi.*.yaml", "clients/*.yaml", "policies/*.yaml", "policies/*.json")
"""Files that decide what a stack is, and how it is judged."""


@dataclass(frozen=True)
class MonthlyPrice:
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
    before: MonthlyPrice | None
    after: MonthlyPrice | None
    broken: Sequence[Problem] = ()
    """Rules that the stack breaks after the change, and not before."""
    conflicts: Sequence[str] = ()
    """Files of the stack with conflicts; at those, the change has what the client wrote."""
    verdict_before: StackVerdict | None = None
    verdict_after: StackVerdict | None = None
    """Of the policies, on what the program plans; None where one of the two specs cannot be loaded."""

    @property
    def plan(self) -> list[tuple[str, str]]:
        """Planned resources that differ: `add`, `change` or `remove`, and type and name."""
        if self.verdict_before is None or self.verdict_after is None:
            return []
        old, new = self.verdict_before.plan, self.verdict_after.plan
        return [
            (("add" if one not in old else "remove" if one not in new else "change"), one)
            for one in sorted(old.keys() | new.keys())
            if old.get(one) != new.get(one)
        ]


def effects(
    folder: Path, changes: Mapping[str, str | None], today: datetime.date, conflicts: Iterable[str] = ()
) -> list[StackEffect]:
    """The effects on every stack of the folder that they concern; `conflicts` names files with conflicts."""
    judged = any(name.startswith("policies/") for name in changes)
    with changed_copy(folder, {}) as before, changed_copy(folder, changes) as after:
        names = sorted({*stacks(before), *stacks(after)})
        effects = [
            replace(_effect(name, before, after, today), conflicts=tuple(_concerning(name, conflicts)))
            for name in names
        ]
        found = [
            one
            for one in effects
            if judged or one.values or one.broken or one.conflicts or one.before != one.after
        ]
        return _with_verdicts(found, before, after)


@contextmanager
def changed_copy(folder: Path, changes: Mapping[str, str | None]) -> Iterator[Path]:
    """A copy of the files that decide what the stacks are, with the changes, within the block."""
    with tempfile.TemporaryDirectory(prefix="trainstack-") as name:
        copy = Path(name)
        for path in {*_found(folder)}:
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


def _found(folder: Path) -> Iterator[Path]:
    for pattern in SPECS:
        yield from folder.glob(pattern)
    yield from (folder / name for name in policy_sources.others(folder) if (folder / name).is_file())


def _with_verdicts(found: Sequence[StackEffect], before: Path, after: Path) -> list[StackEffect]:
    """The effects with the verdicts of the policies, on both sides at once."""
    names = [one.stack for one in found if all(_is_sound(one.stack, folder) for folder in (before, after))]
    if not names:
        return [*found]
    spec = load_file(names[0], after).spec
    kind = spec.cloud, spec.layout.profile
    with Judging(*kind) as on_before, Judging(*kind) as on_after:
        old, new = (
            judging.verdicts(_texts(folder), read(folder).name, names)
            for judging, folder in ((on_before, before), (on_after, after))
        )
    return [
        replace(one, verdict_before=old.get(one.stack), verdict_after=new.get(one.stack)) for one in found
    ]


def _concerning(stack: str, names: Iterable[str]) -> Iterator[str]:
    """The files among those that decide what a stack is, and how it is judged."""
    shared = ("clients/", "policies/")
    return (one for one in names if one == f"Pulumi.{stack}.yaml" or one.startswith(shared))


def _is_sound(stack: str, folder: Path) -> bool:
    spec, problems = _loaded(stack, folder)
    return spec is not None and not problems


def _texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


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


def _price(spec: StackSpec, today: datetime.date) -> MonthlyPrice:
    found = cost.estimate(spec, today)
    return MonthlyPrice(found.minimum, found.expected, found.maximum)


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
