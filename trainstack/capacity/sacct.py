"""Documents of the ledger of a Slurm system, from its own accounting."""

from collections.abc import Iterable
from typing import Any

from infra.slurm import SlurmSystem
from trainstack.ledger import forms, slurm
from trainstack.slurm.commands import SlurmCommands


def documents(
    system: SlurmSystem, reached: SlurmCommands, months: Iterable[str], now: int
) -> list[dict[str, Any]]:
    """Documents of `trainstack ledger` for months in order, from the day of the first job with GPUs on.

    Accounting does not say since when a system exists: earlier days would be idle commitments. Empty where no
    job had GPUs. `now`: seconds since 1970. Raises UserError as `read_sacct`.
    """
    found: list[dict[str, Any]] = []
    for month in months:
        teams = forms.documents(slurm.months(system, slurm.read_sacct(reached, month), month, now))
        first = min((line["day"] for team in teams for line in team["lines"]), default=None)
        if not found and first is None:
            continue
        if not found:
            teams = [{**team, "begun": f"{first}T00:00:00Z"} for team in teams]
        found.append(
            {"schema": "trainstack.ledger/1", "stack": system.cluster, "month": month, "teams": teams}
        )
    return found
