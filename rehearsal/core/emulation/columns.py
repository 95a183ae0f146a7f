"""Columns of the tables: lists of property paths, types, and references that block a deletion."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.core.properties import without_indices


@dataclass(frozen=True)
class Blocked:
    """Condition that refuses a deletion: types `by` whose references block it, `"*"` for any type."""

    code: str
    message: str
    by: tuple[str, ...]
    excepted: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    """Property paths whose references do not block."""

    def holds(self, user_type: str, path: str) -> bool:
        """Return whether a reference from `user_type` at `path` blocks the deletion."""
        if user_type in self.excepted or path in self.own:
            return False
        return "*" in self.by or user_type in self.by


@dataclass(frozen=True)
class Kept:
    """Reservation of a name after the deletion; `{until}` in the reason is the last day."""

    why: str
    days: int | str | None = None
    """Number of days, or the property that holds it; for ever without it."""
    code: str = ""
    message: str = ""
    """Code and message of the refusal; by default those of a name that is taken."""


def blocked(package: str, data: Mapping[str, Any]) -> Blocked:
    """The column `blocked` of a row; its types are written without the package."""
    by, excepted = (full_tokens(package, data.get(key, ())) for key in ("by", "except"))
    return Blocked(data["code"], data["message"], by, excepted, tuple(data.get("own", ())))


def full_tokens(package: str, types: Iterable[str]) -> tuple[str, ...]:
    """Types with their package, such as `aws:ec2/vpc:Vpc`; `"*"` stays as it is."""
    return tuple(one if one == "*" else f"{package}:{one}" for one in types)


def by_type(folder: Path, package: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(full token, row) of every row of the TOML files in a folder; its own keys are not rows."""
    for file in sorted(folder.glob("*.toml")):
        for token, data in tomllib.loads(file.read_text()).items():
            if isinstance(data, dict):
                yield f"{package}:{token}", data


def read_by(function: str, tokens: Iterable[str]) -> str | None:
    """The type whose resources a function reads: `aws:ec2/vpc:Vpc` for `aws:ec2/getVpc:getVpc`."""
    name = function.rpartition(":")[2]
    service, kind = function.partition("/")[0], name.removeprefix("get")
    if not name.startswith("get"):
        return None
    return next((one for one in tokens if one.startswith(f"{service}/") and one.endswith(f":{kind}")), None)


def covers(entries: Iterable[str], path: str) -> bool:
    """Return whether a list of paths covers `path`: `"*"` is all, `"-x"` excludes x; the deepest decides."""
    entries, plain = tuple(entries), without_indices(path)
    fitting = [entry for entry in entries if _within(plain, entry.removeprefix("-"))]
    deepest = max(fitting, key=lambda entry: len(entry.removeprefix("-")), default="")
    return not deepest.startswith("-") if deepest else "*" in entries


def _within(path: str, entry: str) -> bool:
    return path == entry or path.startswith((f"{entry}.", f'{entry}["'))
