"""Policy documents in inputs, and their statements; rules about them are in `iam`."""

import fnmatch
from collections.abc import Iterator
from typing import Any

from rehearsal.aws.rules.book import AwsContext
from rehearsal.aws.rules.reading import document, many, principals
from rehearsal.core.model import Properties, Record

# Policies of identities, without principal.
IDENTITY = {
    "aws:iam/rolePolicy:RolePolicy": "policy",
    "aws:iam/policy:Policy": "policy",
    "aws:iam/userPolicy:UserPolicy": "policy",
    "aws:iam/groupPolicy:GroupPolicy": "policy",
}
# Policies of resources and trust policies of roles, with principals.
RESOURCE = {
    "aws:iam/role:Role": "assumeRolePolicy",
    "aws:s3/bucketPolicy:BucketPolicy": "policy",
    "aws:kms/key:Key": "policy",
    "aws:cloudwatch/logResourcePolicy:LogResourcePolicy": "policyDocument",
    "aws:efs/fileSystemPolicy:FileSystemPolicy": "policy",
    "aws:secretsmanager/secretPolicy:SecretPolicy": "policy",
    "aws:sns/topicPolicy:TopicPolicy": "policy",
}
ALL = {**IDENTITY, **RESOURCE}
_PATHS = tuple(dict.fromkeys(ALL.values()))


def given(inputs: Properties) -> tuple[str, Any] | None:
    """The property that holds the document and its value; None when it is absent or unknown."""
    for path in ("assumeRolePolicy", *_PATHS):
        value = inputs.get(path)
        if isinstance(value, str | dict):
            return path, value
    return None


def statements(inputs: Properties) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """(property, index, statement) of every statement that is an object, where the document is readable."""
    found = given(inputs)
    policy = document(found[1]) if found else None
    if found is None or not isinstance(policy, dict):
        return
    for index, statement in enumerate(many(policy.get("Statement"))):
        if isinstance(statement, dict):
            yield found[0], index, statement


def principal_arns(inputs: Properties) -> Iterator[tuple[str, str]]:
    """(property, ARN) of the roles and users that are principals of a document."""
    for path, _, statement in statements(inputs):
        principal = statement.get("Principal")
        for one in many(principal.get("AWS")) if isinstance(principal, dict) else []:
            if isinstance(one, str):
                yield path, one


def lets(site: AwsContext, key: Record, kind: str, name: str, *actions: str) -> bool:
    """Return whether the policy of a KMS key allows all actions to a principal.

    `kind` is AWS or Service, and the principal is `name` or ends in it. Conditions are ignored.
    """
    own = (one.outputs for one in site.users(key, "kms/keyPolicy:KeyPolicy"))
    policy = document(next(own, key.outputs).get("policy"))
    listed = many(policy.get("Statement")) if isinstance(policy, dict) else []
    allowed = [one for one in listed if isinstance(one, dict) and one.get("Effect") == "Allow"]
    patterns = [
        str(pattern).lower()
        for one in allowed
        if any(who == "*" or who.endswith(name) for who in principals(one, kind))
        for pattern in many(one.get("Action"))
    ]
    return all(
        any(fnmatch.fnmatchcase(action.lower(), pattern) for pattern in patterns) for action in actions
    )
