"""Amounts as Kubernetes writes them: `500m`, `1Gi` (Kubernetes API Reference, Quantity)."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

_UNITS: Mapping[str, Decimal] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def amount(value: Any) -> Decimal | None:
    """A quantity of Kubernetes as a number; None for what is none."""
    text = str(value)
    number = text.rstrip("kKMGTPEim")
    try:
        return Decimal(number) * _UNITS[text[len(number) :]]
    except (InvalidOperation, KeyError):
        return None
