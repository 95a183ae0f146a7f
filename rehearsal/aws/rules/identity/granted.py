"""Actions that no policy of a role allows."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from rehearsal.aws.rules.book import AwsContext
from rehearsal.aws.rules.reading import document, items, many
from rehearsal.core.model import Record

_INLINE, _POLICY = "iam/rolePolicy:RolePolicy", "iam/policy:Policy"
_ATTACHMENT = "iam/rolePolicyAttachment:RolePolicyAttachment"
# Policies that AWS manages whose actions are read here: for logs alone. Others may allow anything.
_OF_LOGS = ("AWSLambdaBasicExecutionRole",)


def lacks(site: AwsContext, role: Record, action: str) -> bool:
    """Return whether all policies of a role are known and none of them allows an action, on any resource."""
    found = list(_documents(site, role))
    return None not in found and not any(_allows(one, action) for one in found)


def _documents(site: AwsContext, role: Record) -> Iterator[Any]:
    """Each policy of a role; None for one that is not known."""
    names = {role.id, role.outputs.get("name"), role.outputs.get("arn")}
    for _, inline in items(role.inputs, "inlinePolicies"):
        yield document(inline.get("policy"))
    for one in site.all(_INLINE):
        if one.outputs.get("role") in names:
            yield document(one.outputs.get("policy"))
    attached = [one.outputs for one in site.all(_ATTACHMENT) if one.outputs.get("role") in names]
    for arn in (*many(role.inputs.get("managedPolicyArns")), *(one.get("policyArn") for one in attached)):
        own = site.find(arn, _POLICY)
        if own is not None:
            yield document(own.outputs.get("policy"))
        elif str(arn).rpartition("/")[2] not in _OF_LOGS:
            yield None


def _allows(policy: Any, action: str) -> bool:
    for one in many(policy.get("Statement")):
        if isinstance(one, dict) and one.get("Effect") == "Allow":
            if "NotAction" in one:
                return True  # nearly every action
            if any(fnmatchcase(action.lower(), str(each).lower()) for each in many(one.get("Action"))):
                return True
    return False
