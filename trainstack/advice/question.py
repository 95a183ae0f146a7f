"""The question: a training run and its limits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from infra.errors import Problem, UserError, did_you_mean

Method = Literal["full", "lora", "qlora"]
METHODS: Final = get_args(Method)
_LARGEST: Final = 1e15


@dataclass(frozen=True)
class Question:
    """One run. Raises UserError with all invalid values."""

    parameters: float
    """All parameters of the model."""
    tokens: float
    """Training tokens, with repetitions."""
    method: Method = "full"
    context: int = 2048
    """Sequence length in tokens."""
    deadline_h: float | None = None
    budget_usd: float | None = None
    """For this one run."""
    spot: bool = False
    """The run checkpoints, so its machines can be reclaimed."""
    flex_start: bool = False
    """The run waits until the cloud has its machines, and ends within their days."""

    @property
    def markets(self) -> tuple[Literal["on_demand", "spot", "flex_start"], ...]:
        """Ways to buy machines that the run allows."""
        spot: tuple[Literal["spot"], ...] = ("spot",) if self.spot else ()
        flex: tuple[Literal["flex_start"], ...] = ("flex_start",) if self.flex_start else ()
        return ("on_demand", *spot, *flex)

    def __post_init__(self) -> None:
        problems = [*self._problems()]
        if problems:
            raise UserError(problems)

    def _problems(self) -> Iterator[Problem]:
        for name in ("parameters", "tokens"):
            value = getattr(self, name)
            if not 0 < value <= _LARGEST or not math.isfinite(value):
                rule = f"must be above 0 and at most {_LARGEST:g}"
                yield Problem(f"--{name}", value, rule, "Such as 7e9.", code="figure-out-of-range")
        if self.method not in METHODS:
            fix = did_you_mean(self.method, METHODS, "Leave it out for full.")
            rule = f"must be one of {', '.join(METHODS)}"
            yield Problem("--method", self.method, rule, fix, code="unknown-method")
        if not 1 <= self.context <= 1_048_576:
            rule = "must be 1 to 1048576 tokens"
            yield Problem("--context", self.context, rule, "Such as 4096.", code="figure-out-of-range")
        for name, value in (("--deadline", self.deadline_h), ("--budget", self.budget_usd)):
            if value is not None and not 0 < value < math.inf:
                rule, fix = "must be above 0", "Leave it out for no limit."
                yield Problem(name, value, rule, fix, code="figure-out-of-range")
