"""The currency of budgets."""

from components.gcp.money.budget import CurrencyArgs
from infra.stackspec.gcp.cloud import GcpSpec


def budget_currency(on: GcpSpec) -> CurrencyArgs | None:
    """The currency of the billing account, with its rate; None for US dollars."""
    wanted = on.billing_currency
    return {"code": wanted.code, "per_usd": wanted.per_usd} if wanted else None
