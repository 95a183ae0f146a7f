"""What somebody wants to train, and within which bounds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from infra.errors import Problem, UserError

Method = Literal["full", "lora", "qlora"]
METHODS: Final = get_args(Method)
_LARGEST: Final = 1e15


@dataclass(frozen=True)
class Question:
    """One run. Raises UserError for values that no run can have, all at once."""

    parameters: float
    """Of the model, all of them."""
    tokens: float
    """That it trains on, repetitions included."""
    method: Method = "full"
    context: int = 2048
    """Tokens of a sequence."""
    deadline_h: float | None = None
    budget_usd: float | None = None
    """For this one run."""
    spot: bool = False
    """Whether the run checkpoints, and so may lose its machines."""

    def __post_init__(self) -> None:
        problems = [*self._problems()]
        if problems:
            raise UserError(problems)

    def _problems(self) -> Iterator[Problem]:
        for name in ("parameters", "tokens"):
            value = getattr(self, name)
            if not 0 < value <= _LARGEST or not math.isfinite(value):
                yield Problem(f"--{name}", value, f"must be above 0 and at most {_LARGEST:g}", "Such as 7e9.")
        if self.method not in METHODS:
            yield Problem("--method", self.method, f"must be one of {', '.join(METHODS)}", "Choose one.")
        if not 1 <= self.context <= 1_048_576:
            yield Problem("--context", self.context, "must be 1 to 1048576 tokens", "Such as 4096.")
        for name, value in (("--deadline", self.deadline_h), ("--budget", self.budget_usd)):
            if value is not None and not 0 < value < math.inf:
                yield Problem(name, value, "must be above 0", "Leave it out for no limit.")
