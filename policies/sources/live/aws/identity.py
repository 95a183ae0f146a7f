"""IAM: roles, users, groups, their policies, access keys.

Shapes: internal/service/iam/{role,policy,role_policy,role_policy_attachment,user*,group*,access_key}.go of
terraform-provider-aws. One operation reports nearly all of it, with documents.
"""

import json
from typing import Any

from policies.sources.live.mapping import LiveKind, Reader, View, same
from policies.sources.live.queries import ApiQuery

_DETAILS = "GetAccountAuthorizationDetails"


def _details(filter: str, key: str) -> ApiQuery:
    return ApiQuery("iam", _DETAILS, key, given={"Filter": [filter]}, label=filter)


def _name(label: str) -> str:
    return f"iam.{_DETAILS}/{label}"


QUERIES = (
    _details("Role", "RoleDetailList"),
    _details("User", "UserDetailList"),
    _details("Group", "GroupDetailList"),
    _details("LocalManagedPolicy", "Policies"),
    ApiQuery("iam", "ListAccessKeys", "AccessKeyMetadata", of=_name("User"), by={"UserName": "UserName"}),
)


def document(path: str) -> Reader:
    """A policy as JSON, as the provider stores it; the SDK decodes it."""

    def read(view: View) -> Any:
        value = view.at(path)
        return json.dumps(value) if isinstance(value, dict) else value

    return read


def _default_version(view: View) -> Any:
    versions = view.at("PolicyVersionList") or ()
    found = next((one.get("Document") for one in versions if one.get("IsDefaultVersion")), None)
    return json.dumps(found) if isinstance(found, dict) else found


def _own(view: View) -> bool:
    """Exclude service-linked roles, which services create and manage (IAM User Guide)."""
    path = view.at("Path") or view.at("of.Path")
    return not str(path).startswith("/aws-service-role/")


def _inline(owner: str) -> LiveKind:
    label, key = owner.capitalize(), f"{owner.capitalize()}Name"
    return LiveKind(
        f"aws:iam/{owner}Policy:{label}Policy",
        _name(label),
        f"{{of.{key}}}:{{PolicyName}}",
        {"name": "PolicyName", "policy": document("PolicyDocument"), owner: f"of.{key}"},
        each=f"{label}PolicyList",
        when=_own,
        regionless=True,
    )


def _attached(owner: str) -> LiveKind:
    label, key = owner.capitalize(), f"{owner.capitalize()}Name"
    return LiveKind(
        f"aws:iam/{owner}PolicyAttachment:{label}PolicyAttachment",
        _name(label),
        f"{{of.{key}}}/{{PolicyArn}}",
        {"policyArn": "PolicyArn", owner: f"of.{key}"},
        each="AttachedManagedPolicies",
        when=_own,
        regionless=True,
    )


KINDS = (
    LiveKind(
        "aws:iam/role:Role",
        _name("Role"),
        "{RoleName}",
        {
            **same("Arn", "Path"),
            "assumeRolePolicy": document("AssumeRolePolicyDocument"),
            "name": "RoleName",
            "permissionsBoundary": "PermissionsBoundary.PermissionsBoundaryArn",
            "uniqueId": "RoleId",
        },
        tags="Tags",
        when=_own,
        regionless=True,
    ),
    LiveKind(
        "aws:iam/policy:Policy",
        _name("LocalManagedPolicy"),
        "{Arn}",
        {
            **same("Arn", "Description", "Path", "PolicyId"),
            "name": "PolicyName",
            "policy": _default_version,
        },
        name="{PolicyName}",
        regionless=True,
    ),
    LiveKind(
        "aws:iam/user:User",
        _name("User"),
        "{UserName}",
        {"arn": "Arn", "name": "UserName", "path": "Path", "uniqueId": "UserId"},
        tags="Tags",
        regionless=True,
    ),
    LiveKind(
        "aws:iam/group:Group",
        _name("Group"),
        "{GroupName}",
        {"arn": "Arn", "name": "GroupName", "path": "Path", "uniqueId": "GroupId"},
        regionless=True,
    ),
    *(_inline(owner) for owner in ("role", "user", "group")),
    *(_attached(owner) for owner in ("role", "user", "group")),
    LiveKind(
        "aws:iam/accessKey:AccessKey",
        "iam.ListAccessKeys",
        "{AccessKeyId}",
        {"user": "UserName", "status": "Status"},
        owner="{asked.UserName}",
        regionless=True,
    ),
)
