"""Faults that a rehearsal injects on demand, from outside of what it runs."""

import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from infra.errors import Problem, UserError

FORMS = {
    "smoke:slow-rank=RANK": "one training rank is stopped half of the time",
}


class SmokeFault(BaseModel):
    """A training rank that is stopped for a share of every period."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slow_rank: int = Field(ge=0)
    duty: float = Field(default=0.5, gt=0, lt=1)
    """Share of the time in which the rank may run."""


class Faults(BaseModel):
    """The faults of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    smoke: SmokeFault | None = None


def parse(texts: Sequence[str]) -> Faults:
    """Read faults such as `smoke:slow-rank=1`. Raises UserError naming every text that is none."""
    smoke: SmokeFault | None = None
    problems = []
    for text in texts:
        found = re.fullmatch(r"smoke:slow-rank=(\d+)", text)
        if found:
            smoke = SmokeFault(slow_rank=int(found.group(1)))
        else:
            fix = "; ".join(f"{form}: {meaning}" for form, meaning in FORMS.items())
            problems.append(Problem("--fault", text, "unknown fault", f"Known are: {fix}."))
    if problems:
        raise UserError(problems)
    return Faults(smoke=smoke)
