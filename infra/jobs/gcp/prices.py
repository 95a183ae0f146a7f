"""What spot machines cost of their price on demand, by the catalog."""

from infra.catalog.gcp.jobs import jobs


def spot_share(machine: str, region: str) -> float | None:
    """The share; None where no source says one of the prices."""
    spot, full = jobs.price(machine, region, "spot"), jobs.price(machine, region)
    return spot.usd / full.usd if spot and full else None
