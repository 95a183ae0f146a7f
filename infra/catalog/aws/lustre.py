"""Sizes of FSx for Lustre file systems (PERSISTENT_2, SSD)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from infra.catalog.aws.model import LustreThroughput

_UNIT: Final = "MB/s per TiB"


@dataclass(frozen=True)
class LustreTable:
    """The throughput tiers of PERSISTENT_2 SSD, in rising order, by MB/s per TiB."""

    tiers: Mapping[int, LustreThroughput]

    def capacities(self, throughput: int, *, efa: bool, count: int = 4) -> tuple[int, ...]:
        """The smallest `count` capacities in GiB that the tier accepts."""
        tier = self.tiers[throughput]
        if efa:
            return tuple(tier.efa_capacity_step_gib * n for n in range(1, count + 1))
        stepped = [tier.capacity_step_gib * n for n in range(1, count + 1)]
        return tuple(sorted({tier.capacity_first_gib, *stepped})[:count])

    def lustre_problem(self, capacity_gib: int, throughput: int, efa: bool) -> str | None:
        """The reason why FSx would refuse the file system, with an accepted value; None: accepted.

        `capacity_gib` in GiB, `throughput` in MB/s per TiB, `efa` whether clients reach it over EFA.
        """
        tier = self.tiers.get(throughput)
        if tier is None:
            offered = ", ".join(map(str, self.tiers))
            return (
                f"a throughput of {throughput} {_UNIT} is not offered (offered: {offered}); "
                f"set {self._nearest_tier(throughput)}"
            )
        step = tier.efa_capacity_step_gib if efa else tier.capacity_step_gib
        if capacity_gib >= step and capacity_gib % step == 0:
            return None
        if not efa and capacity_gib == tier.capacity_first_gib:
            return None
        first = "" if efa else f"{tier.capacity_first_gib} GiB or "
        below, above = self._around(capacity_gib, throughput, efa=efa)
        choice = f"{above} GiB" if below is None else f"{below} or {above} GiB"
        with_efa = " with EFA" if efa else ""
        return (
            f"{capacity_gib} GiB is not a size at {throughput} {_UNIT}{with_efa}: "
            f"it must be {first}a multiple of {step} GiB; set {choice}"
        )

    def _nearest_tier(self, throughput: int) -> int:
        return min(self.tiers, key=lambda tier: (abs(tier - throughput), tier))

    def _around(self, capacity_gib: int, throughput: int, *, efa: bool) -> tuple[int | None, int]:
        tier = self.tiers[throughput]
        step = tier.efa_capacity_step_gib if efa else tier.capacity_step_gib
        floor = capacity_gib // step * step
        sizes = {size for size in (floor, floor + step, step) if size > 0}
        if not efa:
            sizes.add(tier.capacity_first_gib)
        below = max((size for size in sizes if size < capacity_gib), default=None)
        return below, min(size for size in sizes if size > capacity_gib)
