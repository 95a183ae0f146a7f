"""Wrong numbers in one rank: silent corruption of what it contributes, wrong and NaN gradients."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.injector import Injector, InjectorError, plugin_path
from tests.faults.lab import REPOSITORY, Lab, Run


class Plugin(Injector):
    """A fault inside one rank, by a plugin that only the laboratory puts on the rank's path."""

    rank: int

    def fault(self) -> dict[str, Any]:
        """The settings of the plugin."""
        raise NotImplementedError

    def proof(self, lab: Lab) -> Path:
        """Where the plugin writes a line each time it bites."""
        return lab.home / f"proof-{type(self).__name__}"

    def install(self, lab: Lab) -> None:
        self.proof(lab).unlink(missing_ok=True)

    def environment(self, lab: Lab, node: int) -> Mapping[str, str | None]:
        settings = {**self.fault(), "rank": self.rank, "proof": str(self.proof(lab))}
        return {"TSLAB_FAULT": json.dumps(settings), "PYTHONPATH": f"{REPOSITORY}:{plugin_path('rank')}"}

    def prove(self, run: Run) -> str:
        lines = self.proof(run.lab).read_text().splitlines() if self.proof(run.lab).exists() else []
        if not lines:
            raise InjectorError(f"rank {self.rank}: the fault {self.fault()} never bit")
        return f"rank {self.rank}: bit {len(lines)} times, first at {lines[0]}"


@dataclass
class Corruption(Plugin):
    """In every n-th payload one element of what a rank contributes is lost, or XORed with `mask`.

    Messages below `least_bytes` pass; the product's own bookkeeping (times, counts) is no payload.
    """

    rank: int = 1
    every: int = 1
    mask: int | None = None
    least_bytes: int = 512

    def fault(self) -> dict[str, Any]:
        return {
            "kind": "corrupt", "every": self.every, "mask": self.mask, "least_bytes": self.least_bytes,
        }  # fmt: skip


@dataclass
class NotANumber(Plugin):
    """The gradient of one parameter is NaN on one rank from the n-th backward pass of a model on."""

    rank: int = 1
    after: int = 3
    parameter: int = 5

    def fault(self) -> dict[str, Any]:
        return {"kind": "nan", "after": self.after, "parameter": self.parameter}


@dataclass
class WrongGradient(Plugin):
    """One element of one gradient is wrong on one rank in every n-th backward pass, before any reduction."""

    rank: int = 1
    every: int = 61
    parameter: int = 5

    def fault(self) -> dict[str, Any]:
        return {"kind": "miscount", "every": self.every, "parameter": self.parameter}
