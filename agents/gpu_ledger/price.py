"""Prices of device-hours. Pure; runs in a pod."""

from collections.abc import Iterable, Mapping

from agents.gpu_ledger.units import parts, renamed

HOUR = 3600
Prices = Mapping[str, Mapping[str, float]]
"""US dollars of an hour of a whole device by pool and resource: the pool's expected price of a node-hour,
divided by the GPUs of a node. A pool without a source for its price has no entry."""


def gpu_hours(resource: str, device_s: float) -> float:
    """GPU-hours of device-seconds of a resource: a share of a GPU counts as its part."""
    return device_s / parts(resource) / HOUR


def usd(prices: Prices, pool: str, resource: str, device_s: float) -> float | None:
    """US dollars for device-seconds of a resource of a pool; None where the price is unknown."""
    price = prices.get(pool, {}).get(renamed(resource, 1))
    return None if price is None else price * gpu_hours(resource, device_s)


def usd_of(prices: Prices, amounts: Iterable[tuple[str, str, float]]) -> tuple[float, set[str]]:
    """US dollars for (pool, resource, device-seconds) that have a price, and the pools without one."""
    total, unknown = 0.0, set[str]()
    for pool, resource, device_s in amounts:
        found = usd(prices, pool, resource, device_s)
        if found is not None:
            total += found
        elif device_s:
            unknown.add(pool)
    return total, unknown
