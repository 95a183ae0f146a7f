"""Kubernetes resource quantities such as `500m`, `2`, `1Gi`."""

import re
from decimal import Decimal

# source: kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
_FACTORS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([numkMGTPE]?|[KMGTPE]i)")


def parse(text: str | int | float) -> Decimal:
    """The value of a quantity (cores, bytes, or a count). Raises ValueError for other text."""
    found = _FORM.fullmatch(str(text).strip())
    if not found:
        raise ValueError(
            f"{text!r}: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return Decimal(found[1]) * _FACTORS[found[2]]


def amount(value: object) -> Decimal | None:
    """The value of a quantity of any type; None for other values."""
    try:
        return parse(str(value))
    except ValueError:
        return None
