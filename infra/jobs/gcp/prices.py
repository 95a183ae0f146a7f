"""Price of spot machines relative to on demand, from the catalog."""

from infra.catalog.gcp.jobs import jobs


def spot_share(machine: str, region: str) -> float | None:
    """Spot price divided by on-demand price; None without both."""
    spot, full = jobs.price(machine, region, "spot"), jobs.price(machine, region)
    return spot.usd / full.usd if spot and full else None
