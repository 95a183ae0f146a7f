"""What an accelerator reaches with the best matrix shapes: a lookup that never guesses."""

import functools
import importlib.resources
import re
import tomllib
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Achievable:
    """A published rate in TFLOPS (dense) for devices whose name contains `name` as whole words."""

    name: str
    dtype: str
    tflops: float
    kind: str
    source: str
    date: str


def achievable(device: str, dtype: str) -> Achievable | None:
    """The figure for a device as its driver names it, at a data type; None if none is published."""
    found = [
        item
        for item in _table()
        if item.dtype == dtype and re.search(rf"(?<![\w-]){re.escape(item.name)}(?![\w])", device)
    ]
    return found[0] if len(found) == 1 else None


@functools.cache
def _table() -> tuple[Achievable, ...]:
    text = importlib.resources.files("smoke_training.expected").joinpath("matmul.toml").read_text()
    return tuple(Achievable(**row) for row in tomllib.loads(text)["accelerator"])
