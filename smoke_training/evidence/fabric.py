"""Records of collectives: durations and correctness of their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from smoke_training.evidence.registry import Evidence, Record, kind
from smoke_training.reader import Positive


@kind("collective")
class Collective(Record):
    """One collective's sweep: `seconds[size index][repetition]`, the maximum over ranks, warm-up included.

    `sizes` are bytes of the whole array, ascending; `algorithms` has NCCL's choice per size ("ring/simple")
    where its log names one. `queue_share` is the worst rank's share of the timed seconds in which its threads
    waited for a CPU, `steal_share` the worst node's share of stolen CPU time; None where the kernel does not
    report it. `dtype` is that of the elements. With `launches` the times include the launch of the call;
    events on accelerators exclude it. `skipped` is the reason why a collective did not run, `cut` why the
    sweep ends before its largest size.
    """

    name: str
    sizes: tuple[int, ...] = ()
    seconds: tuple[tuple[Positive, ...], ...] = ()
    algorithms: Mapping[str, str] = field(default_factory=dict)
    queue_share: float | None = None
    steal_share: float | None = None
    dtype: str = "float32"
    launches: bool = True
    skipped: str | None = None
    cut: str | None = None

    def __post_init__(self) -> None:
        if len(self.seconds) != len(self.sizes):
            raise TypeError(f"{self.name}: {len(self.seconds)} rows of durations for {len(self.sizes)} sizes")


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """Wrong elements that one rank received at one size.

    `accused` are the ranks whose contribution is missing or altered; `chunks` the ranks whose part of the
    array they lie in.
    """

    rank: int
    size: int
    elements: int
    accused: tuple[int, ...]
    chunks: tuple[int, ...]


@kind("payload")
class Payload(Record):
    """Exact, rank-coded contents that one collective returned, over all ranks and sizes.

    All of every size was compared, rounded down to whole words of 8 bytes for each rank; `elements` counts
    the words that all ranks received.
    """

    name: str
    sizes: tuple[int, ...] = ()
    elements: int = 0
    wrong: tuple[Wrong, ...] = ()
    skipped: str | None = None


def sweep_of(found: Evidence, name: str) -> Collective | None:
    """The last sweep of a collective."""
    return next((item for item in reversed(found.all_of(Collective)) if item.name == name), None)
