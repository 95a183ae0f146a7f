"""Checks of billing: the project's billing account, and the right to create its budget."""

from collections.abc import Iterator

from infra.catalog.gcp.deploying import permissions
from infra.clouds.gcp.api import ApiRequestError
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project

_CHECK, _ACCOUNT, _DOLLARS = "billing", "billing-account", "USD"
_COMPUTE = "services/6F81-5844-456A"
"""Compute Engine in the price list (Cloud Billing Catalog API)."""
_DRIFT = 0.1
"""Part by which a written rate may differ before it is reported."""


def enabled(project: Project) -> Iterator[Answer]:
    """Billing is enabled on the project, by the account in the spec, which has its budget."""
    name, wanted = project.on.project, _account(project)
    info = project.asked("cloudbilling.projects.getBillingInfo", name=project.path)
    found = str(info.get("billingAccountName", ""))
    fix = f"gcloud billing projects link {name} --billing-account={project.on.billing_account}"
    if not found:
        text = f"project {name} has no billing account, so no resource can be created in it"
        yield Answer(_CHECK, State.SHORT, text, fix)
    elif found != wanted:
        text = f"project {name} is paid by {found}, the spec names {wanted}: its budget would show no cost"
        yield Answer(_CHECK, State.SHORT, text, f"Correct on.billing_account, or: {fix}")
    elif not info.get("billingEnabled"):
        text = f"billing is not enabled on project {name}: {found} is closed or not in good standing"
        yield Answer(_CHECK, State.SHORT, text, "Reopen the billing account, or link another one.")
    else:
        yield Answer(_CHECK, State.READY, f"{found} pays for {name}")


def account(project: Project) -> Iterator[Answer]:
    """The billing account is open, and the deployer can manage a budget in it."""
    name = _account(project)
    about = project.asked("cloudbilling.billingAccounts.get", name=name)
    currency = str(about.get("currencyCode") or _DOLLARS)
    if not about.get("open"):
        fix = "Open it in the console, or name another one under on.billing_account."
        yield Answer(_ACCOUNT, State.SHORT, f"{name} is closed", fix)
        return
    yield from _currency(project, name, currency)
    wanted = sorted({one for row in permissions().values() if row.on == "billing" for one in row.permissions})
    method = "cloudbilling.billingAccounts.testIamPermissions"
    granted = project.asked(method, resource=name, permissions=wanted).get("permissions") or ()
    missing = [one for one in wanted if one not in granted]
    if missing:
        fix = (
            f"gcloud billing accounts add-iam-policy-binding {project.on.billing_account} "
            f"--member={project.who or 'MEMBER'} --role=roles/billing.costsManager"
        )
        yield Answer(_ACCOUNT, State.SHORT, f"no role on {name} allows: {', '.join(missing)}", fix)
    else:
        yield Answer(_ACCOUNT, State.READY, f"{name} is open, and allows budgets of the deployer")


def _currency(project: Project, name: str, currency: str) -> Iterator[Answer]:
    """Budgets are in the currency of the account, at a rate near that of the price list.

    Source: Budget API v1, BudgetAmount.specifiedAmount (`currencyCode` must match the account's).
    """
    written = project.on.billing_currency
    if written is None and currency == _DOLLARS:
        return
    text = f"{name} is billed in {currency}, and the Budget API accepts no other currency"
    if currency == _DOLLARS:
        yield Answer(_ACCOUNT, State.SHORT, text, "Remove on.billing_currency.")
        return
    rate = _rate(project, currency)
    shown = f"on.billing_currency: {{code: {currency}, per_usd: {'RATE' if rate is None else f'{rate:g}'}}}"
    if written is None or written.code != currency:
        yield Answer(_ACCOUNT, State.SHORT, text, f"Write {shown}.")
    elif rate is not None and abs(written.per_usd / rate - 1) > _DRIFT:
        text = (
            f"budgets are converted at {written.per_usd:g} {currency} per dollar, Google's rate is {rate:g}"
        )
        yield Answer(_ACCOUNT, State.NOTE, text, f"Write {shown}.")


def _rate(project: Project, currency: str) -> float | None:
    """Amount of a currency for a dollar in Google's price list; None where it does not have it."""
    method = "cloudbilling.services.skus.list"
    try:
        page = project.asked(method, parent=_COMPUTE, currencyCode=currency, pageSize=1)
    except ApiRequestError:
        return None  # only an addition to the text
    for sku in page.get("skus") or ():
        for row in sku.get("pricingInfo") or ():
            return float(row["currencyConversionRate"]) or None
    return None


def _account(project: Project) -> str:
    return f"billingAccounts/{project.on.billing_account}"
