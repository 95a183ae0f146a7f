"""Checks of billing: the project's billing account, and the right to create its budget."""

from collections.abc import Iterator

from infra.catalog.gcp.deploying import permissions
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project

_CHECK, _ACCOUNT, _DOLLARS = "billing", "billing-account", "USD"


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
    if currency != _DOLLARS:
        text = f"{name} is billed in {currency}: the Budget API accepts only amounts in its own currency"
        fix = "Name an account in US dollars: budgets and prices of the stack are in them."
        yield Answer(_ACCOUNT, State.SHORT, text, fix)
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


def _account(project: Project) -> str:
    return f"billingAccounts/{project.on.billing_account}"
