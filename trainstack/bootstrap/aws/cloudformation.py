"""The account's resources as a CloudFormation template."""

import json
from typing import Any, Final

from trainstack.bootstrap.aws.account import SESSION_SECONDS, ClientAccount, roles_boundary_name
from trainstack.bootstrap.trust import Pipeline

_KEY = {"Fn::GetAtt": ["StateKey", "Arn"]}
# State must outlive the CloudFormation stack.
_KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


MOST_BYTES: Final = 51_200
"""Of a template without a bucket (AWS CloudFormation user guide, "Quotas")."""


def render(account: ClientAccount) -> str:
    """The template, as JSON; without indentation where it would be too long with it."""
    resources = {**_state(account), **_boundaries(account), "Budget": _budget(account)}
    template: dict[str, Any] = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Deployers of trainstack and their state, for {account.client}",
    }
    if isinstance(account.trust, Pipeline):
        template["Parameters"] = {
            "CreateProvider": {
                "Type": "String",
                "AllowedValues": ["true", "false"],
                "Default": "true",
                "Description": f"false if the account has an identity provider for {account.trust.issuer}",
            }
        }
        template["Conditions"] = {"NewProvider": {"Fn::Equals": [{"Ref": "CreateProvider"}, "true"]}}
        properties = {"Url": account.trust.issuer, "ClientIdList": [account.trust.audience]}
        resources["Provider"] = {
            "Type": "AWS::IAM::OIDCProvider", "Condition": "NewProvider", "Properties": properties
        }  # fmt: skip
    outputs: dict[str, Any] = {"Backend": {"Value": f"s3://{account.bucket}?region={account.place.region}"}}
    for made in account.roles(_KEY):
        word = _word(made.name)
        for number, document in enumerate(made.policies, 1):
            policy = {
                "ManagedPolicyName": f"{made.name}-{number}",
                "PolicyDocument": document,
                "Roles": [{"Ref": word}],
            }
            resources[f"Policy{word}{number}"] = {"Type": "AWS::IAM::ManagedPolicy", "Properties": policy}
        role = {
            "RoleName": made.name,
            "AssumeRolePolicyDocument": made.trusted,
            "PermissionsBoundary": {"Ref": "DeployersBoundary"},
            "MaxSessionDuration": SESSION_SECONDS,
        }
        resources[word] = {"Type": "AWS::IAM::Role", "Properties": role}
        outputs[f"{word}Arn"] = {"Value": {"Fn::GetAtt": [word, "Arn"]}}
    found = {**template, "Resources": resources, "Outputs": outputs}
    text = json.dumps(found, indent=1) + "\n"
    return text if len(text) <= MOST_BYTES else json.dumps(found, separators=(",", ":")) + "\n"


def _state(account: ClientAccount) -> dict[str, Any]:
    encryption = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": _KEY}
    public = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    bucket = {
        "BucketName": account.bucket,
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {"ServerSideEncryptionByDefault": encryption, "BucketKeyEnabled": True}
            ]
        },
        "VersioningConfiguration": {"Status": "Enabled"},
        "PublicAccessBlockConfiguration": dict.fromkeys(public, True),
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
    }
    key = {
        "Description": "State of Pulumi and its secrets",
        "EnableKeyRotation": True,
        "KeyPolicy": account.key_policy,
    }
    policy = {"Bucket": {"Ref": "StateBucket"}, "PolicyDocument": account.bucket_policy}
    alias = {"AliasName": account.alias, "TargetKeyId": {"Ref": "StateKey"}}
    return {
        "StateKey": {"Type": "AWS::KMS::Key", **_KEPT, "Properties": key},
        "StateKeyAlias": {"Type": "AWS::KMS::Alias", **_KEPT, "Properties": alias},
        "StateBucket": {"Type": "AWS::S3::Bucket", **_KEPT, "Properties": bucket},
        "StateBucketPolicy": {"Type": "AWS::S3::BucketPolicy", **_KEPT, "Properties": policy},
    }


def _boundaries(account: ClientAccount) -> dict[str, Any]:
    documents = {"DeployersBoundary": (account.boundary, account.deployers_boundary(_KEY))}
    for spec in account.place.deployed:
        document = account.created_roles_boundary(spec, _KEY)
        documents[f"{_word(spec.name)}RolesBoundary"] = roles_boundary_name(spec), document
    return {
        word: {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {"ManagedPolicyName": name, "PolicyDocument": document},
        }
        for word, (name, document) in documents.items()
    }


def _word(name: str) -> str:
    """A name of lower-case letters, digits and dashes as a logical id, of which it has one alone."""
    return name.replace("-", "Dash")


def _budget(account: ClientAccount) -> dict[str, Any]:
    subscribers = [{"SubscriptionType": "EMAIL", "Address": one} for one in account.contacts]
    notifications = [
        {
            "Notification": {
                "NotificationType": kind,
                "ComparisonOperator": "GREATER_THAN",
                "Threshold": 100,
                "ThresholdType": "PERCENTAGE",
            },
            "Subscribers": subscribers,
        }
        for kind in ("ACTUAL", "FORECASTED")
    ]
    budget = {
        "BudgetName": account.budget,
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": account.place.monthly_usd, "Unit": "USD"},
    }
    properties = {"Budget": budget, "NotificationsWithSubscribers": notifications}
    return {"Type": "AWS::Budgets::Budget", "Properties": properties}
