"""The project itself, what is above it, and who may do what in them.

Shapes: google/services/resourcemanager and google/tpgiamresource of terraform-provider-google.
"""

from typing import Any

from policies.sources.live.form import Each, Kind, Reader, Shape, View
from policies.sources.live.gcp.assets import OF_PROJECT, PROJECT, end_of
from policies.sources.live.question import ACCOUNT, Question

_RIGHT = "resourcemanager.projects.get"
# All bindings of a policy, those with a condition as well (cloudresourcemanager v3, GetPolicyOptions).
_WHOLE = {"options.requestedPolicyVersion": 3}


def above(level: str) -> str:
    """The name of the question for the folders, or the organization, that a project is in."""
    return f"cloudresourcemanager.projects.getAncestry/{level}"


def _ancestry(level: str) -> Question:
    chosen = f"ancestor[?resourceId.type=='{level}'].{{name: join('', ['{level}s/', resourceId.id])}}"
    return Question(
        "cloudresourcemanager", "projects.getAncestry", chosen,
        given={"projectId": ACCOUNT}, right=_RIGHT, label=level,
    )  # fmt: skip


def _policy_of(level: str) -> Question:
    return Question(
        "cloudresourcemanager", f"{level}s.getIamPolicy", given=_WHOLE, of=above(level),
        by={"resource": "name"}, right=f"resourcemanager.{level}s.getIamPolicy",
    )  # fmt: skip


QUESTIONS = (
    Question(
        "cloudresourcemanager", "projects.get", given={"projectId": ACCOUNT},
        right=_RIGHT,
    ),
    Question(
        "cloudresourcemanager", "projects.getIamPolicy", given={"resource": OF_PROJECT, **_WHOLE},
        right="resourcemanager.projects.getIamPolicy",
    ),
    _ancestry("folder"),
    _ancestry("organization"),
    _policy_of("folder"),
    _policy_of("organization"),
)  # fmt: skip
assert QUESTIONS[0].name == PROJECT


def role(holder: Reader) -> Reader:
    """The id of a binding: who it is about, its role, and its condition (tpgiamresource)."""

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


def _binding(package: str, level: str, holder: Reader, whose: dict[str, Any]) -> Kind:
    return Kind(
        f"gcp:{package}/iAMBinding:IAMBinding",
        f"cloudresourcemanager.{level}.getIamPolicy",
        role(holder),
        {**whose, "role": "role", "members": "members"},
        each="bindings",
        everywhere=True,
    )


_LOGS: Shape = {
    "service": "service",
    "auditLogConfigs": Each("auditLogConfigs", {"logType": "logType", "exemptedMembers": "exemptedMembers"}),
}


def _audits(kind: str, level: str, holder: Reader, whose: dict[str, Any]) -> Kind:
    question = f"cloudresourcemanager.{level}.getIamPolicy"
    return Kind(kind, question, _audited(holder), {**whose, **_LOGS}, each="auditConfigs", everywhere=True)


KINDS = (
    _binding("projects", "projects", _project, {"project": _project}),
    _binding("folder", "folders", _resource, {"folder": _resource}),
    _binding("organizations", "organizations", _NUMBER, {"orgId": _NUMBER}),
    _audits("gcp:projects/iAMAuditConfig:IAMAuditConfig", "projects", _project, {"project": _project}),
    _audits("gcp:folder/iamAuditConfig:IamAuditConfig", "folders", _resource, {"folder": _resource}),
    _audits(
        "gcp:organizations/iamAuditConfig:IamAuditConfig",
        "organizations",
        _NUMBER,
        {"orgId": _NUMBER},
    ),
)
