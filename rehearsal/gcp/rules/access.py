"""Roles and members of grants of every type."""

import difflib
import re
from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import EVERY, Violation
from rehearsal.gcp import provider
from rehearsal.gcp.rules.book import BOOK, ProjectView

_DOCS = (
    "IAM documentation, Roles and permissions (names of predefined and custom roles); Principal identifiers"
)
_ROLE = re.compile(
    r"roles/[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*|(projects|organizations)/[^/]+/roles/[A-Za-z0-9_.]{3,64}"
)
_ADDRESSED = ("user:", "serviceAccount:", "group:")
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|[^@\s]+\.svc\.id\.goog\[[^\]]+\]")
_MISSPELT = 0.9


def _granted(inputs: Properties) -> str:
    """The role of a grant; empty for another type, or while it is not known."""
    role = inputs.get("role")
    return role if isinstance(role, str) and ("member" in inputs or "members" in inputs) else ""


@BOOK.rule("GCP-IAM-005", EVERY, source=_DOCS)
def _role(inputs: Properties) -> Iterator[Violation]:
    """The role of a grant is roles/NAME, or projects/PROJECT/roles/NAME for a custom one."""
    role = _granted(inputs)
    if role and not _ROLE.fullmatch(role):
        fix = f"Write roles/{role}." if _ROLE.fullmatch(f"roles/{role}") else "Write roles/NAME."
        yield Violation("role", f"The role name must be in the form roles/NAME: {role}", fix)


@BOOK.rule("GCP-IAM-006", EVERY, source=provider.lists_source())
def _misspelt(inputs: Properties) -> Iterator[Violation]:
    """A predefined role is not a misspelling of a known one."""
    near = _meant(_granted(inputs))
    if near:
        role = inputs["role"]
        yield Violation("role", f"Role {role} is not supported for this resource", f"Did you mean {near}?")


@BOOK.rule_around("GCP-IAM-007", EVERY, source=provider.lists_source(), advice=True)
def _unknown(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A predefined role is one of the list, which may be older than it."""
    role = _granted(inputs)
    if role.startswith("roles/") and role not in provider.roles() and not _meant(role):
        yield Violation("role", f"{role} may be newer than the list of roles, which does not have it")


@BOOK.rule("GCP-IAM-008", EVERY, source=_DOCS)
def _address(inputs: Properties) -> Iterator[Violation]:
    """A user, group or service account is named by its email address."""
    for path in ("member", "members[]") if "role" in inputs else ():
        for here, member in each(inputs, path):
            kind, sign, own = str(member).partition(":")
            if f"{kind}{sign}" in _ADDRESSED and not _ADDRESS.fullmatch(own):
                yield Violation(
                    here, f"{member}: {own} is not an email address", f"Write {kind}:NAME@DOMAIN."
                )


def _meant(role: str) -> str:
    """The known role that a name is a misspelling of."""
    known = provider.roles()
    if not role.startswith("roles/") or role in known or not _ROLE.fullmatch(role):
        return ""
    service = role.partition(".")[0]
    near = [one for one in known if one.partition(".")[0] == service] or list(known)
    for one in difflib.get_close_matches(role, near, n=3, cutoff=_MISSPELT):
        same = re.findall(r"\d+", one) == re.findall(r"\d+", role)
        if same and not role.startswith(one) and not one.startswith(role):
            return one
    return ""


@BOOK.rule(
    "GCP-IAM-009",
    "gcp:projects/iAMMember:IAMMember",
    "gcp:projects/iAMBinding:IAMBinding",
    source="hashicorp/terraform-provider-google pull request 859 (projects.setIamPolicy takes neither)",
)
def _project_of_all(inputs: Properties) -> Iterator[Violation]:
    """A project gives no role to allUsers or allAuthenticatedUsers."""
    for path in ("member", "members[]"):
        for here, member in each(inputs, path):
            if member in ("allUsers", "allAuthenticatedUsers"):
                message = "Request contains an invalid argument: a project takes no public member"
                yield Violation(here, message, "Grant the role on the resource alone.", "badRequest")


@BOOK.rule(
    "GCP-IAM-010",
    "gcp:projects/iAMCustomRole:IAMCustomRole",
    source="terraform-google-modules/terraform-google-iam issue 158 (text)",
)
def _right_of_organizations(inputs: Properties) -> Iterator[Violation]:
    """A custom role of a project does not list projects, which is a right on an organization."""
    for path, permission in each(inputs, "permissions[]"):
        if permission == "resourcemanager.projects.list":
            fix = "Leave it out, or make the role in the organization."
            yield Violation(path, f"Permission {permission} is not valid.", fix, "badRequest")


@BOOK.rule(
    "GCP-IAM-011",
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool",
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
    source="IAM REST reference, projects.locations.workloadIdentityPools.create (workloadIdentityPoolId)",
)
def _reserved_pool(inputs: Properties) -> Iterator[Violation]:
    """The id of a pool of identities, and of its provider, does not begin with gcp-."""
    for name in ("workloadIdentityPoolId", "workloadIdentityPoolProviderId"):
        if str(inputs.get(name)).startswith("gcp-"):
            yield Violation(
                name, f"{inputs[name]} begins with gcp-, which is reserved for Google", "Rename it."
            )
            return
