"""Amounts as Kubernetes writes them."""

from decimal import Decimal

import pytest

from infra.quantity import amount, parse


@pytest.mark.parametrize(
    ("text", "value"), [("500m", "0.5"), ("1Gi", 2**30), ("2", 2), ("1e3", 1000), ("1.5k", 1500), (3, 3)]
)
def test_quantities(text: str | int, value: str | int) -> None:
    assert parse(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "1 Gi", "ten", "1KiB"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        parse(text)
    assert amount(text) is None
