"""The security baseline that Google enforces in new organizations, with the services' errors.

Constraints: Resource Manager documentation, "Google Cloud security baseline constraints" (organizations made
since 2024-05-03), by their legacy names, and by the managed ones of later organizations. Members of an
organization: Organization Policy documentation, "Restrict identities with domain-restricted sharing".
"""

import json
import re
from collections.abc import Iterator

from rehearsal.accounts import project_number
from rehearsal.core.faults import Organization
from rehearsal.core.model import Properties, RefusalError
from rehearsal.gcp.rules.book import block

_BUCKET, _KEY = "gcp:storage/bucket:Bucket", "gcp:serviceaccount/key:Key"
_CONTACT, _FORWARDING = "gcp:essentialcontacts/contact:Contact", "gcp:compute/forwardingRule:ForwardingRule"
_EXCEPTION = "Let the administrator of organization policies except the project, or change the resource."
_BASIC = ("roles/owner", "roles/editor")
_PUBLIC = ("allUsers", "allAuthenticatedUsers")
# Members by the project's number: default accounts, and agents of services.
_NUMBERED = re.compile(r"(?:service-)?(?P<number>\d+)(?:-compute)?@(?!system\.).*gserviceaccount\.com")
_OF_PROJECT = re.compile(r".+@(?P<project>[^@.]+)(?:\.iam|\.appspot)?\.gserviceaccount\.com")
_POOL = re.compile(r"principal(?:Set)?://iam\.googleapis\.com/projects/(?P<number>[^/]+)/.+")
_KUBERNETES = re.compile(r"(?P<project>[^@/]+)\.svc\.id\.goog\[.+\]")
_SETS = "This constraint defines the organization principal sets that can be granted IAM roles."


def broken(
    organization: Organization, token: str, inputs: Properties, project: str
) -> Iterator[tuple[str, RefusalError]]:
    """(constraint, error of the service) of all violations."""
    if "member" in inputs or "members" in inputs:
        yield from _shared(organization, token, inputs, project)
    if token == _BUCKET and inputs.get("uniformBucketLevelAccess") is not True:
        constraint = "storage.uniformBucketLevelAccess"
        text = f"Error 412: Request violates constraint 'constraints/{constraint}'"
        yield constraint, RefusalError("conditionNotMet", text, "Set uniformBucketLevelAccess.")
    if token == _KEY:
        yield from _keys(inputs, project)
    if token == _CONTACT and not str(inputs.get("email")).endswith(_at(organization)):
        for constraint in ("essentialcontacts.allowedContactDomains", _managed("essentialcontacts")):
            yield constraint, _denied(constraint, project, "Contacts are of allowed domains only.")
    if token == _FORWARDING and _outside(inputs):
        for constraint in ("compute", "compute.managed"):
            name = f"{constraint}.restrictProtocolForwardingCreationForTypes"
            yield name, _denied(name, project, "Protocol forwarding is internal only.")


def _keys(inputs: Properties, project: str) -> Iterator[tuple[str, RefusalError]]:
    what, verb = ("Upload", "upload") if inputs.get("publicKeyData") else ("Creation", "creation")
    name = f"iam.disableServiceAccountKey{what}"
    text = f"Error 400: Key {verb} is not allowed on this service account."
    yield name, RefusalError("failedPrecondition", text, "Use an identity without keys.")
    managed = f"iam.managed.disableServiceAccountKey{what}"
    yield managed, _denied(managed, project, f"This constraint disables the {verb} of keys.")


def _shared(
    organization: Organization, token: str, inputs: Properties, project: str
) -> Iterator[tuple[str, RefusalError]]:
    """Violations of bindings: members of other organizations, and basic roles of default accounts.

    Texts: terraform-google-modules/terraform-example-foundation issue 1454 (legacy), public transcripts of
    gcloud (managed).
    """
    given = inputs.get("members") or [inputs.get("member")]
    for member in (one for one in given if isinstance(one, str)):
        value = member.partition(":")[2] or member
        if not _belongs(organization, member, project):
            constraint = "iam.allowedPolicyMemberDomains"
            violation = {
                "description": f"User {value} is not in permitted organization.",
                "subject": f"orgpolicy:projects/{project}?configvalue={value}",
                "type": f"constraints/{constraint}",
            }
            text = (
                "Error 400: One or more users named in the policy do not belong to a permitted customer. "
                f"Details: {json.dumps([violation])}"
            )
            yield constraint, RefusalError("failedPrecondition", text, _EXCEPTION)
            managed = "iam.managed.allowedPolicyMembers"
            if member not in organization.allowed_members:
                yield managed, _denied(managed, project, _SETS)
        if inputs.get("role") in _BASIC and _is_default(value):
            name = "iam.managed.preventPrivilegedBasicRolesForDefaultServiceAccounts"
            yield name, _denied(name, project, "Default service accounts have no basic roles.")


def _belongs(organization: Organization, member: str, project: str) -> bool:
    """Return whether a member is of the organization: its people, projects, pools and agents of services."""
    kind, _, value = member.partition(":")
    if kind in ("user", "group", "domain"):
        return value.rpartition("@")[2].lower() in organization.domains
    if kind != "serviceAccount":
        pool = _POOL.fullmatch(member)
        return member not in _PUBLIC and (not pool or pool["number"] == project_number(project))
    if numbered := _NUMBERED.fullmatch(value):
        return numbered["number"] in {project_number(one) for one in (project, *organization.projects)}
    found = _KUBERNETES.fullmatch(value) or _OF_PROJECT.fullmatch(value)
    return found is not None and found["project"] in (project, *organization.projects)


def _is_default(account: str) -> bool:
    return account.endswith(("@developer.gserviceaccount.com", "@appspot.gserviceaccount.com"))


def _denied(constraint: str, project: str, why: str) -> RefusalError:
    """The error of a managed constraint."""
    text = (
        f"Error 400: Operation denied by org policy on resource 'projects/{project}': "
        f'["constraints/{constraint}": "{why}"].'
    )
    return RefusalError("failedPrecondition", text, _EXCEPTION)


def _at(organization: Organization) -> tuple[str, ...]:
    return tuple(f"@{one}" for one in organization.domains)


def _managed(service: str) -> str:
    return f"{service}.managed.allowedContactDomains"


def _outside(inputs: Properties) -> bool:
    """Return whether a rule forwards packets from outside to one machine."""
    scheme = inputs.get("loadBalancingScheme", "EXTERNAL")
    return scheme == "EXTERNAL" and "/targetInstances/" in str(block(inputs).get("target"))
