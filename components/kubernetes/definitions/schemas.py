"""The schemas of charts (`schemas.toml`), and their packed definitions."""

import datetime
import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.shared.schemas import SchemaLine

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class ChartSchemas:
    """One row of `schemas.toml`."""

    packed: bool
    """True where the definitions are a file here, and the chart's own are left out."""
    names: Sequence[str]
    lines: Sequence[SchemaLine]
    source: str
    date: datetime.date

    @property
    def migrated(self) -> bool:
        """True where lines store different versions, so that objects may have to be written again."""
        return len({line.stored for line in self.lines}) > 1


@functools.cache
def schemas() -> Mapping[str, ChartSchemas]:
    """All rows by chart."""
    table = tomllib.loads((_FOLDER / "schemas.toml").read_text(encoding="utf-8"))
    return {
        key: ChartSchemas(**{**row, "lines": [SchemaLine(**line) for line in row["lines"]]})
        for key, row in table.items()
    }


@functools.cache
def packed(chart: str) -> bytes:
    """The definitions of a chart: JSON, compressed with xz."""
    return (_FOLDER / f"{chart}.json.xz").read_bytes()
