"""What a transfer between two nodes should reach: the plan's rate where it binds one transfer (pure)."""

from dataclasses import dataclass

from smoke_training.model import PLAN, Expected
from smoke_training.plan import Plan
from smoke_training.statistics.links import ZONE

# One TCP stream of one CPU: some clouds allow no more per flow outside a placement group, and the receiving
# core tires not far above. A higher declared rate says nothing about what one stream should reach.
STREAM_LIMIT_GBIT_S = 5.0


@dataclass(frozen=True)
class Reference:
    """What every cell should reach in Gb/s; None: what fast peers reach at the same time."""

    gbit_s: float | None
    expected: Expected


def reference(plan: Plan, backend: str) -> Reference:
    """The declared rate where it binds a single transfer, else the peers."""
    rate, limit = plan.rail_gbit_s, "the plan declares no rate"
    if backend == "nccl":
        # Even published all-reduces over GPUDirect-TCPX reach 0.68 of the line (`figures.toml`).
        rate, limit = None, "nobody measured what transfers between accelerators reach of the line"
    elif rate is not None and rate > STREAM_LIMIT_GBIT_S:
        limit, rate = f"one TCP stream is not expected to fill {rate:g} Gb/s", None
    if rate is None:
        reason = f"{limit}; cells are compared with the fastest fifth of the same repetition"
        return Reference(None, Expected.unknown(reason))
    found = Expected(value=rate, kind="declared", source=f"{PLAN}, rail_gbit_s", floor=ZONE[0] * rate)
    return Reference(rate, found)
