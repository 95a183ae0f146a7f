"""What columns of the tables mean: lists of property paths, types, and who stands against a deletion."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.core.properties import without_indices


@dataclass(frozen=True)
class Blocked:
    """When a deletion is refused: types that stand in the way `by` referring, `"*"` for any of them."""

    code: str
    message: str
    by: tuple[str, ...]
    excepted: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    """Property paths whose references do not count."""

    def holds(self, user_type: str, path: str) -> bool:
        """Whether a reference from `user_type` at `path` stands in the way."""
        if user_type in self.excepted or path in self.own:
            return False
        return "*" in self.by or user_type in self.by


@dataclass(frozen=True)
class Kept:
    """Why a name is not free again after the deletion; `{until}` in it is the last day."""

    why: str
    days: int | str | None = None
    """For so many days, or as many as this property says; for ever without it."""
    code: str = ""
    message: str = ""
    """Of the refusal; without them, those of a name that is taken."""


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
    """Whether a list of paths covers `path`: `"*"` is all, `"-x"` takes x out; the deepest entry decides."""
    entries, plain = tuple(entries), without_indices(path)
    fitting = [entry for entry in entries if _within(plain, entry.removeprefix("-"))]
    deepest = max(fitting, key=lambda entry: len(entry.removeprefix("-")), default="")
    return not deepest.startswith("-") if deepest else "*" in entries


def _within(path: str, entry: str) -> bool:
    return path == entry or path.startswith((f"{entry}.", f'{entry}["'))
