"""Roles, policies, keys and secrets. Source: API References of each service."""

import json
from collections.abc import Mapping

from rehearsal.aws.services.rds import SECRETS
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record

# List of a role -> type of resource that is one of its entries.
_LISTED = {
    "managedPolicyArns": "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "inlinePolicies": "aws:iam/rolePolicy:RolePolicy",
}


def _role_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The trust policy as text, as IAM returns it."""
    trust = inputs.get("assumeRolePolicy")
    return {"assumeRolePolicy": json.dumps(trust) if isinstance(trust, dict) else trust}


def _role_deleting(site: Site, role: Record) -> None:
    """Detach all of a kind that the role itself lists, or everything where that is forced.

    Source: hashicorp/terraform-provider-aws internal/service/iam/role.go (DeleteRole).
    """
    forced = role.outputs.get("forceDetachPolicies")
    gone = {token for name, token in _LISTED.items() if forced or role.outputs.get(name)}
    for use in site.state.users(role):
        if use.user.type in gone:
            site.state.remove(use.user)


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


HOOKS: Mapping[str, Hooks[Site]] = {
    "iam/role:Role": Hooks(outputs=_role_outputs, deleting=_role_deleting),
    "kms/key:Key": Hooks(outputs=_key_outputs),
    "kms/alias:Alias": Hooks(outputs=_alias_outputs),
    "secretsmanager/secret:Secret": Hooks(deleting=_secret_deleting),
    "secretsmanager/secretVersion:SecretVersion": Hooks(outputs=_value_outputs, created=_value_created),
}
