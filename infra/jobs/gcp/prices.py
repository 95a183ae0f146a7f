"""Price of spot and flex-start machines relative to on demand, from the catalog."""

from typing import Final

from infra.catalog.gcp.jobs import Kind, jobs

_KINDS: Final[dict[str, Kind]] = {"SPOT": "spot", "FLEX_START": "flex_start"}


def price_share(machine: str, region: str, strategy: str) -> float | None:
    """Price divided by the on-demand price; None without both, and for other strategies."""
    kind = _KINDS.get(strategy)
    bought, full = jobs.price(machine, region, kind) if kind else None, jobs.price(machine, region)
    return bought.usd / full.usd if bought and full else None
