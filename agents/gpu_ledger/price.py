"""Prices of device-hours. Pure; runs in a pod."""

from collections.abc import Iterable, Mapping

HOUR = 3600
Prices = Mapping[str, Mapping[str, float]]
"""US dollars of a device-hour by pool and resource: the pool's expected price of a node-hour, divided by the
devices of a node. A pool without a source for its price has no entry."""


def usd(prices: Prices, pool: str, resource: str, device_s: float) -> float | None:
    """US dollars for device-seconds of a resource of a pool; None where the price is unknown."""
    price = prices.get(pool, {}).get(resource)
    return None if price is None else price * device_s / HOUR


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
