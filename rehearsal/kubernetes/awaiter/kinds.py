"""Kinds that the provider waits for, with timeouts: `kinds.toml`, shown in docs/reference/awaiter.md."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Awaited:
    """One row; see the head of `kinds.toml`."""

    kind: str
    ready: str
    errors: tuple[str, ...]
    limit_s: float
    limit: str
    read: bool
    source: str
    here: str


@functools.cache
def awaited() -> Mapping[str, Awaited]:
    """The rows by kind, such as `batch/v1 Job`; for every other kind an accepted object is a ready one."""
    with Path(__file__).with_name("kinds.toml").open("rb") as file:
        rows = [Awaited(**{**row, "errors": tuple(row["errors"])}) for row in tomllib.load(file)["row"]]
    return {row.kind: row for row in rows}
