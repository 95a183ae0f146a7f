"""The result of a replay: steps, ended nodes, data, and replacements that need an approval."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from infra.engine.plan import PlannedStep
from trainstack.plans.drains import drains
from trainstack.plans.losses import endangered, losses, lowered, retained, shrinks


@dataclass(frozen=True)
class Replay:
    """The steps of an `up` on a recorded state: of the program and files before, and of the new ones."""

    stack: str
    resources: int
    """In the state."""
    before: Sequence[PlannedStep]
    after: Sequence[PlannedStep]
    errors: Sequence[str] = ()
    """Messages of the engine; the steps are not complete then."""
    secret: Sequence[str] = ()
    """Resources of which only secrets may change: they were left out."""

    @property
    def pending(self) -> list[PlannedStep]:
        """Steps that an `up` of today makes as well."""
        return [one for one in self.after if one in self.before]

    @property
    def caused(self) -> list[PlannedStep]:
        """Steps of the update itself."""
        return [one for one in self.after if one not in self.before]

    @property
    def effects(self) -> list[tuple[str, str]]:
        """Nodes that end and data that is deleted, stays or shrinks, as pairs of kind and text."""
        named = (
            ("nodes end", drains), ("data is deleted", losses), ("data stays", retained),
            ("data shrinks", shrinks), ("limit falls", lowered),
        )  # fmt: skip
        return [(kind, line) for kind, lines in named for line in lines(self.after)]

    @property
    def approvals(self) -> list[str]:
        """Names of the approvals that an `up` needs: one for each resource with data that it ends."""
        return [f"{self.stack}:{one.operation}:{one.name}" for one in endangered(self.after)]

    def missing(self, given: Collection[str]) -> list[str]:
        """The approvals that are not given."""
        return [one for one in self.approvals if one not in given]


def counts(steps: Sequence[PlannedStep]) -> Mapping[str, int]:
    """The number of steps by operation."""
    found = dict.fromkeys(("create", "update", "replace", "delete"), 0)
    for one in steps:
        found[one.operation] += 1
    return found
