"""Policies wherever they are given, roles, keys, secrets. Source: API References of each service."""

import json
from collections.abc import Callable, Iterator

from infra.rehearsal.aws import policy
from infra.rehearsal.aws.services.rds import SECRETS
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties
from infra.rehearsal.state import Record

_MANAGED_POLICY_CHARACTERS = 6144
_INLINE_POLICY_CHARACTERS = 10240
_ALIAS = "alias/"


def checks_policy(
    name: str, *, principals: bool | None, most: int = 0
) -> Callable[[Properties], Iterator[CheckFailure]]:
    """A check of the policy document at property `name`, of at most `most` characters without white space."""

    def check(inputs: Properties) -> Iterator[CheckFailure]:
        document = inputs.get(name)
        if not known(document):
            return
        for problem in policy.problems(document, principals=principals):
            yield CheckFailure(name, problem)
        size = len("".join(str(document).split()))
        if most and size > most:
            yield CheckFailure(name, f"LimitExceeded: {size} characters, but at most {most} are allowed")

    return check


def admits_principals(name: str) -> Callable[[Site, Properties], None]:
    """Refuse a document at property `name` that names roles or users of this account which do not exist."""

    def admit(site: Site, inputs: Properties) -> None:
        if site.preview or not known(inputs.get(name)):
            return
        for arn in policy.principal_arns(inputs[name]):
            kind = arn.rpartition(":")[2].partition("/")[0]
            ours = arn.startswith(f"arn:aws:iam::{site.account}:") and "*" not in arn
            checkable = ours and kind in ("role", "user") and "/aws-service-role/" not in arn
            if checkable and not site.state.issued(arn):
                raise refuse(
                    "MalformedPolicyDocument",
                    f'Invalid principal in policy: "AWS":"{arn}"',
                    name,
                    "The role or user must exist before a policy names it.",
                )

    return admit


def _role_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """IAM hands back the trust policy as text."""
    trust = inputs.get("assumeRolePolicy")
    return {"assumeRolePolicy": json.dumps(trust) if isinstance(trust, dict) else trust}


def _role_deleting(site: Site, role: Record) -> None:
    """`forceDetachPolicies` detaches before the deletion."""
    if role.outputs.get("forceDetachPolicies"):
        for use in site.state.users(role):
            if use.user.type == "aws:iam/rolePolicyAttachment:RolePolicyAttachment":
                site.state.remove(use.user)


def _check_alias(inputs: Properties) -> Iterator[CheckFailure]:
    name = inputs.get("name")
    if isinstance(name, str) and (not name.startswith(_ALIAS) or name.startswith("alias/aws/")):
        yield CheckFailure("name", f"ValidationException: must begin with {_ALIAS} and not with alias/aws/")


def _alias_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    key = site.find(inputs.get("targetKeyId"), "kms/key:Key")
    return {"targetKeyArn": key.outputs["arn"] if key else None}


def _key_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    if inputs.get("policy") is not None:
        return {}
    root = {
        "Sid": "Enable IAM User Permissions",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{site.account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    return {"policy": json.dumps({"Version": "2012-10-17", "Id": "key-default-1", "Statement": [root]})}


def _admit_value(site: Site, inputs: Properties) -> None:
    given = [
        name for name in ("secretString", "secretBinary", "secretStringWo") if inputs.get(name) is not None
    ]
    if len(given) != 1:
        raise refuse(
            "InvalidRequestException",
            "exactly one of secretString and secretBinary is needed",
            "secretString",
        )


def _value_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    secret = site.find(inputs.get("secretId"), "secretsmanager/secret:Secret")
    identifier = str(outputs["id"])
    return {"arn": secret.outputs["arn"] if secret else None, "versionId": identifier.rpartition("|")[2]}


def _value_created(site: Site, version: Record) -> None:
    value = version.inputs.get("secretString") or version.inputs.get("secretBinary")
    if isinstance(value, str) and version.outputs.get("arn"):
        site.state.put_document(SECRETS, str(version.outputs["arn"]), _parsed(value))


def _parsed(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _secret_deleting(site: Site, secret: Record) -> None:
    site.state.drop_document(SECRETS, str(secret.outputs.get("arn")))


_INLINE = checks_policy("policy", principals=False, most=_INLINE_POLICY_CHARACTERS)
_MANAGED = checks_policy("policy", principals=False, most=_MANAGED_POLICY_CHARACTERS)

HOOKS = {
    "iam/role:Role": Hooks(
        check=checks_policy("assumeRolePolicy", principals=True),
        admit=admits_principals("assumeRolePolicy"),
        outputs=_role_outputs,
        deleting=_role_deleting,
    ),
    "iam/rolePolicy:RolePolicy": Hooks(check=_INLINE),
    "iam/policy:Policy": Hooks(check=_MANAGED),
    "kms/key:Key": Hooks(
        check=checks_policy("policy", principals=True),
        admit=admits_principals("policy"),
        outputs=_key_outputs,
    ),
    "kms/alias:Alias": Hooks(check=_check_alias, outputs=_alias_outputs),
    "cloudwatch/logResourcePolicy:LogResourcePolicy": Hooks(
        check=checks_policy("policyDocument", principals=True)
    ),
    "efs/fileSystemPolicy:FileSystemPolicy": Hooks(
        check=checks_policy("policy", principals=True), admit=admits_principals("policy")
    ),
    "secretsmanager/secret:Secret": Hooks(deleting=_secret_deleting),
    "secretsmanager/secretVersion:SecretVersion": Hooks(
        admit=_admit_value, outputs=_value_outputs, created=_value_created
    ),
    "secretsmanager/secretPolicy:SecretPolicy": Hooks(
        check=checks_policy("policy", principals=True), admit=admits_principals("policy")
    ),
    "sns/topicPolicy:TopicPolicy": Hooks(
        check=checks_policy("policy", principals=True), admit=admits_principals("policy")
    ),
}
