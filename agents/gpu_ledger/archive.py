"""The book of a month that is over. Pure; runs in a pod."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.gpu_ledger.ledger import SCHEMA
from agents.gpu_ledger.row import LedgerRow


@dataclass(frozen=True)
class Archive:
    """The rows of a month that is over, with the terms of the last booking."""

    team: str
    rows: list[LedgerRow]
    terms: Mapping[str, Any]

    def text(self) -> str:
        """The archive as JSON."""
        rows = [[*vars(row).values()] for row in self.rows]
        body = {"schema": SCHEMA, "team": self.team, "rows": rows, "terms": self.terms}
        return json.dumps(body, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> "Archive":
        """The archive in a text."""
        body = json.loads(text)
        return cls(body["team"], [LedgerRow(*row) for row in body["rows"]], body["terms"])
