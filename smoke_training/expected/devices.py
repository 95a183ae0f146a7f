"""Rows of `devices.toml`: changes of error counters, and the driver's messages, that are faults (pure)."""

import importlib.resources
import tomllib
from dataclasses import dataclass
from functools import cache

from smoke_training.expected.tables import FigureSource
from smoke_training.reader import decode

FAIL, DOUBT = "fail", "doubt"


@dataclass(frozen=True, kw_only=True)
class CounterLimit:
    """A change above `above` per run, second, minute or bit is a fault, a doubt, or only reported."""

    name: str
    above: float
    meaning: str
    source: FigureSource
    per: str = "run"
    verdict: str = FAIL
    cause: str = "unknown"


@dataclass(frozen=True, kw_only=True)
class XidRule:
    """Codes of messages that request an action, `only` of one severity; `cause` is a `model.Cause`."""

    codes: tuple[int, ...]
    action: str
    source: FigureSource
    cause: str = "gpu_failed"
    only: str = ""


@dataclass(frozen=True, kw_only=True)
class CopyRate:
    """GB/s that healthy GPUs reach in one kind of copy, the lowest of the sources."""

    device: str
    copy: str
    gb_s: float
    source: FigureSource


@dataclass(frozen=True)
class DeviceLimits:
    """All rows: counters by name, Xid codes, copies by GPU and kind."""

    counters: dict[str, CounterLimit]
    xids: dict[int, XidRule]
    rates: dict[tuple[str, str], CopyRate]


@cache
def shipped() -> DeviceLimits:
    """The rows of this package."""
    text = importlib.resources.files(__package__).joinpath("devices.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    rows = {
        kind: [row | {"source": content["sources"][row["source"]]} for row in content[kind]]
        for kind in ("counter", "xid", "rate")
    }
    counters = [decode(CounterLimit, row) for row in rows["counter"]]
    xids = [decode(XidRule, row) for row in rows["xid"]]
    rates = [decode(CopyRate, row) for row in rows["rate"]]
    return DeviceLimits(
        {row.name: row for row in counters},
        {code: row for row in xids for code in row.codes},
        {(row.device, row.copy): row for row in rates},
    )
