"""The project, its folders and organization, and their IAM policies.

Shapes: google/services/resourcemanager and google/tpgiamresource of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.gcp.assets import OF_PROJECT, PROJECT, end_of
from policies.sources.live.mapping import Each, LiveKind, Reader, Shape, View, same
from policies.sources.live.queries import ACCOUNT, ApiQuery

_RIGHT = "resourcemanager.projects.get"
# All bindings of a policy, those with a condition as well (cloudresourcemanager v3, GetPolicyOptions).
_WHOLE = {"options.requestedPolicyVersion": 3}


def above(level: str) -> str:
    """Name of the query for the folders or the organization of the project."""
    return f"cloudresourcemanager.projects.getAncestry/{level}"


def _ancestry(level: str) -> ApiQuery:
    chosen = f"ancestor[?resourceId.type=='{level}'].{{name: join('', ['{level}s/', resourceId.id])}}"
    return ApiQuery(
        "cloudresourcemanager", "projects.getAncestry", chosen,
        given={"projectId": ACCOUNT}, right=_RIGHT, label=level,
    )  # fmt: skip


def _policy_of(level: str) -> ApiQuery:
    return ApiQuery(
        "cloudresourcemanager", f"{level}s.getIamPolicy", given=_WHOLE, of=above(level),
        by={"resource": "name"}, right=f"resourcemanager.{level}s.getIamPolicy",
    )  # fmt: skip


QUERIES = (
    ApiQuery(
        "cloudresourcemanager", "projects.get", given={"projectId": ACCOUNT},
        right=_RIGHT,
    ),
    ApiQuery(
        "cloudresourcemanager", "projects.getIamPolicy", given={"resource": OF_PROJECT, **_WHOLE},
        right="resourcemanager.projects.getIamPolicy",
    ),
    _ancestry("folder"),
    _ancestry("organization"),
    _policy_of("folder"),
    _policy_of("organization"),
)  # fmt: skip
assert QUERIES[0].name == PROJECT


def role(holder: Reader) -> Reader:
    """The id of a binding: its resource, role and condition (tpgiamresource)."""

    def read(view: View) -> str:
        title = view.at("condition.title")
        return f"{holder(view)}/{view.at('role')}" + (f"/{title}" if title else "")

    return read


def _audited(holder: Reader) -> Reader:
    return lambda view: f"{holder(view)}/audit_config/{view.at('service')}"


def _resource(view: View) -> str:
    return str(view.at("asked.resource"))


_NUMBER = end_of("asked.resource")


def _project(view: View) -> str:
    return str(view.look.account)


def _binding(package: str, level: str, holder: Reader, whose: dict[str, Any]) -> LiveKind:
    return LiveKind(
        f"gcp:{package}/iAMBinding:IAMBinding",
        f"cloudresourcemanager.{level}.getIamPolicy",
        role(holder),
        {**whose, "role": "role", "members": "members"},
        each="bindings",
        regionless=True,
    )


_LOGS: Shape = {
    "service": "service",
    "auditLogConfigs": Each("auditLogConfigs", same("logType", "exemptedMembers")),
}


def _audits(kind: str, level: str, holder: Reader, whose: dict[str, Any]) -> LiveKind:
    query = f"cloudresourcemanager.{level}.getIamPolicy"
    return LiveKind(kind, query, _audited(holder), {**whose, **_LOGS}, each="auditConfigs", regionless=True)


KINDS = (
    _binding("projects", "projects", _project, {"project": _project}),
    _binding("folder", "folders", _resource, {"folder": _resource}),
    _binding("organizations", "organizations", _NUMBER, {"orgId": _NUMBER}),
    _audits("gcp:projects/iAMAuditConfig:IAMAuditConfig", "projects", _project, {"project": _project}),
    _audits("gcp:folder/iamAuditConfig:IamAuditConfig", "folders", _resource, {"folder": _resource}),
    _audits("gcp:organizations/iamAuditConfig:IamAuditConfig", "organizations", _NUMBER, {"orgId": _NUMBER}),
)
