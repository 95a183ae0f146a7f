"""The account's resources as a Terraform configuration in JSON."""

import json
from collections.abc import Iterator
from typing import Any

from trainstack.bootstrap.aws.account import SESSION_SECONDS, ClientAccount, roles_boundary_name
from trainstack.bootstrap.trust import Pipeline

_KEY = "${aws_kms_key.state.arn}"
_KEPT = {"prevent_destroy": True}
_PROVIDER = ">= 5.81"
"""Earlier ones require `thumbprint_list` of an identity provider (terraform-provider-aws PR 37255)."""


def render(account: ClientAccount) -> str:
    """The file, for `main.tf.json`."""
    place = account.place
    resources: dict[str, dict[str, Any]] = {
        "aws_kms_key": {
            "state": {
                "description": "State of Pulumi and its secrets",
                "enable_key_rotation": True,
                "policy": json.dumps(account.key_policy),
                "lifecycle": _KEPT,
            }
        },
        "aws_kms_alias": {
            "state": {
                "name": account.alias,
                "target_key_id": "${aws_kms_key.state.key_id}",
                "lifecycle": _KEPT,
            }
        },
        **_bucket(account),
        "aws_iam_policy": {
            "deployers": {"name": account.boundary, "policy": json.dumps(account.deployers_boundary(_KEY))},
            **{
                f"roles-{spec.name}": {
                    "name": roles_boundary_name(spec),
                    "policy": json.dumps(account.created_roles_boundary(spec, _KEY)),
                }
                for spec in place.deployed
            },
        },
        "aws_iam_role": {},
        "aws_iam_role_policy_attachment": {},
        "aws_budgets_budget": {"account": _budget(account)},
    }
    found: dict[str, Any] = {
        "terraform": {
            "required_version": ">= 1.5",
            "required_providers": {"aws": {"source": "hashicorp/aws", "version": _PROVIDER}},
        },
        "provider": {"aws": {"region": place.region, "allowed_account_ids": [place.name]}},
        "output": {"backend": {"value": f"s3://{account.bucket}?region={place.region}"}},
    }
    if isinstance(account.trust, Pipeline):
        text = f"false if the account has an identity provider for {account.trust.issuer}"
        found["variable"] = {"create_provider": {"type": "bool", "default": True, "description": text}}
        resources["aws_iam_openid_connect_provider"] = {
            "pipeline": {
                "count": "${var.create_provider ? 1 : 0}",
                "url": account.trust.issuer,
                "client_id_list": [account.trust.audience],
            }
        }
    for name in _roles(account, resources):
        found["output"][name] = {"value": f"${{aws_iam_role.{name}.arn}}"}
    return json.dumps({**found, "resource": resources}, indent=1) + "\n"


def _roles(account: ClientAccount, resources: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Add the roles with their policies; their names."""
    for made in account.roles(_KEY):
        name = made.name
        resources["aws_iam_role"][name] = {
            "name": name,
            "assume_role_policy": json.dumps(made.trusted),
            "permissions_boundary": "${aws_iam_policy.deployers.arn}",
            "max_session_duration": SESSION_SECONDS,
        }
        for number, document in enumerate(made.policies, 1):
            one = f"{name}-{number}"
            resources["aws_iam_policy"][one] = {"name": one, "policy": json.dumps(document)}
            resources["aws_iam_role_policy_attachment"][one] = {
                "role": f"${{aws_iam_role.{name}.name}}",
                "policy_arn": f"${{aws_iam_policy.{one}.arn}}",
            }
        yield name


def _bucket(account: ClientAccount) -> dict[str, Any]:
    reference = "${aws_s3_bucket.state.id}"
    encryption = {"sse_algorithm": "aws:kms", "kms_master_key_id": _KEY}
    public = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
    return {
        "aws_s3_bucket": {"state": {"bucket": account.bucket, "lifecycle": _KEPT}},
        "aws_s3_bucket_versioning": {
            "state": {"bucket": reference, "versioning_configuration": {"status": "Enabled"}}
        },
        "aws_s3_bucket_server_side_encryption_configuration": {
            "state": {
                "bucket": reference,
                "rule": {"apply_server_side_encryption_by_default": encryption, "bucket_key_enabled": True},
            }
        },
        "aws_s3_bucket_public_access_block": {"state": {"bucket": reference, **dict.fromkeys(public, True)}},
        "aws_s3_bucket_ownership_controls": {
            "state": {"bucket": reference, "rule": {"object_ownership": "BucketOwnerEnforced"}}
        },
        "aws_s3_bucket_policy": {
            "state": {
                "bucket": reference,
                "policy": json.dumps(account.bucket_policy),
                # S3 refuses both at once: "A conflicting conditional operation is currently in progress".
                "depends_on": ["aws_s3_bucket_public_access_block.state"],
            }
        },
    }


def _budget(account: ClientAccount) -> dict[str, Any]:
    return {
        "name": account.budget,
        "budget_type": "COST",
        "time_unit": "MONTHLY",
        "limit_amount": f"{account.place.monthly_usd:.2f}",
        "limit_unit": "USD",
        "notification": [
            {
                "notification_type": kind,
                "comparison_operator": "GREATER_THAN",
                "threshold": 100,
                "threshold_type": "PERCENTAGE",
                "subscriber_email_addresses": [*account.contacts],
            }
            for kind in ("ACTUAL", "FORECASTED")
        ],
    }
