"""Expected rate of a transfer between two nodes: the plan's rate where it limits one transfer (pure)."""

from dataclasses import dataclass

from smoke_training.model import PLAN, Expected
from smoke_training.plan import Plan
from smoke_training.statistics.links import ZONE

# One TCP stream of one CPU: some clouds allow no more per flow outside a placement group, and the receiving
# core tires not far above. A higher declared rate does not predict the rate of one stream.
STREAM_LIMIT_GBIT_S = 5.0


@dataclass(frozen=True)
class LinkReference:
    """Expected rate of every cell in Gb/s; None: the rate of fast peers at the same time."""

    gbit_s: float | None
    expected: Expected


def reference(plan: Plan, backend: str) -> LinkReference:
    """Return the declared rate where it limits a single transfer, else the peers."""
    rate, limit = plan.rail_gbit_s, "the plan declares no rate"
    if backend == "nccl":
        # Even published all-reduces over GPUDirect-TCPX reach 0.68 of the line (`figures.toml`).
        rate, limit = None, "no measurement of single transfers between accelerators is published"
    elif rate is not None and rate > STREAM_LIMIT_GBIT_S:
        limit, rate = f"one TCP stream is not expected to fill {rate:g} Gb/s", None
    if rate is None:
        reason = f"{limit}; cells are compared with the fastest fifth of the same repetition"
        return LinkReference(None, Expected.unknown(reason))
    found = Expected(value=rate, kind="declared", source=f"{PLAN}, rail_gbit_s", floor=ZONE[0] * rate)
    return LinkReference(rate, found)
