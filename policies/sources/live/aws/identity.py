"""IAM: roles, users, groups, their policies, access keys.

Shapes: internal/service/iam/{role,policy,role_policy,role_policy_attachment,user*,group*,access_key}.go of
terraform-provider-aws. One operation tells nearly all of it, documents included.
"""

import json
from typing import Any

from policies.sources.live.form import Kind, Reader, View
from policies.sources.live.question import Question

_DETAILS = "GetAccountAuthorizationDetails"


def _details(filter: str, key: str) -> Question:
    return Question("iam", _DETAILS, key, given={"Filter": [filter]}, label=filter)


def _name(label: str) -> str:
    return f"iam.{_DETAILS}/{label}"


QUESTIONS = (
    _details("Role", "RoleDetailList"),
    _details("User", "UserDetailList"),
    _details("Group", "GroupDetailList"),
    _details("LocalManagedPolicy", "Policies"),
    Question("iam", "ListAccessKeys", "AccessKeyMetadata", of=_name("User"), by={"UserName": "UserName"}),
)


def document(path: str) -> Reader:
    """A policy as the text that the provider has; the SDK reads it into an object."""

    def read(view: View) -> Any:
        value = view.at(path)
        return json.dumps(value) if isinstance(value, dict) else value

    return read


def _default_version(view: View) -> Any:
    """The document that counts."""
    versions = view.at("PolicyVersionList") or ()
    found = next((one.get("Document") for one in versions if one.get("IsDefaultVersion")), None)
    return json.dumps(found) if isinstance(found, dict) else found


def _own(view: View) -> bool:
    """Roles of services are made and kept by them (IAM User Guide, service-linked roles)."""
    path = view.at("Path") or view.at("of.Path")
    return not str(path).startswith("/aws-service-role/")


def _inline(owner: str) -> Kind:
    label, key = owner.capitalize(), f"{owner.capitalize()}Name"
    return Kind(
        f"aws:iam/{owner}Policy:{label}Policy",
        _name(label),
        f"{{of.{key}}}:{{PolicyName}}",
        {"name": "PolicyName", "policy": document("PolicyDocument"), owner: f"of.{key}"},
        each=f"{label}PolicyList",
        when=_own,
        everywhere=True,
    )


def _attached(owner: str) -> Kind:
    label, key = owner.capitalize(), f"{owner.capitalize()}Name"
    return Kind(
        f"aws:iam/{owner}PolicyAttachment:{label}PolicyAttachment",
        _name(label),
        f"{{of.{key}}}/{{PolicyArn}}",
        {"policyArn": "PolicyArn", owner: f"of.{key}"},
        each="AttachedManagedPolicies",
        when=_own,
        everywhere=True,
    )


KINDS = (
    Kind(
        "aws:iam/role:Role",
        _name("Role"),
        "{RoleName}",
        {
            "arn": "Arn",
            "assumeRolePolicy": document("AssumeRolePolicyDocument"),
            "name": "RoleName",
            "path": "Path",
            "permissionsBoundary": "PermissionsBoundary.PermissionsBoundaryArn",
            "uniqueId": "RoleId",
        },
        tags="Tags",
        when=_own,
        everywhere=True,
    ),
    Kind(
        "aws:iam/policy:Policy",
        _name("LocalManagedPolicy"),
        "{Arn}",
        {
            "arn": "Arn",
            "description": "Description",
            "name": "PolicyName",
            "path": "Path",
            "policy": _default_version,
            "policyId": "PolicyId",
        },
        name="{PolicyName}",
        everywhere=True,
    ),
    Kind(
        "aws:iam/user:User",
        _name("User"),
        "{UserName}",
        {"arn": "Arn", "name": "UserName", "path": "Path", "uniqueId": "UserId"},
        tags="Tags",
        everywhere=True,
    ),
    Kind(
        "aws:iam/group:Group",
        _name("Group"),
        "{GroupName}",
        {"arn": "Arn", "name": "GroupName", "path": "Path", "uniqueId": "GroupId"},
        everywhere=True,
    ),
    *(_inline(owner) for owner in ("role", "user", "group")),
    *(_attached(owner) for owner in ("role", "user", "group")),
    Kind(
        "aws:iam/accessKey:AccessKey",
        "iam.ListAccessKeys",
        "{AccessKeyId}",
        {"user": "UserName", "status": "Status"},
        owner="{asked.UserName}",
        everywhere=True,
    ),
)
