"""Where policy documents are given, and their statements. What is wrong with them is said in `iam`."""

from collections.abc import Iterator
from typing import Any

from rehearsal.aws.rules.reading import document, many
from rehearsal.core.model import Properties

# Policies of identities: what a role may do. They name no principal.
IDENTITY = {
    "aws:iam/rolePolicy:RolePolicy": "policy",
    "aws:iam/policy:Policy": "policy",
    "aws:iam/userPolicy:UserPolicy": "policy",
    "aws:iam/groupPolicy:GroupPolicy": "policy",
}
# Policies of resources and trust policies of roles: who may do it. They name principals.
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
    """The property that holds the document and its value; None when there is none or it is not known."""
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
    """(property, ARN) of the roles and users that a document names as principals."""
    for path, _, statement in statements(inputs):
        principal = statement.get("Principal")
        for one in many(principal.get("AWS")) if isinstance(principal, dict) else []:
            if isinstance(one, str):
                yield path, one
