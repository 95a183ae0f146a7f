"""The account's resources as a CloudFormation template."""

import json
import re
from typing import Any

from trainstack.bootstrap.aws.account import SESSION_SECONDS, AwsAccount
from trainstack.bootstrap.trust import Pipeline

_KEY = {"Fn::GetAtt": ["StateKey", "Arn"]}
# State must outlive the CloudFormation stack.
_KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def render(account: AwsAccount) -> str:
    """The template, as JSON."""
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
    for spec in account.place.specs:
        word = "".join(part.capitalize() for part in re.findall(r"[A-Za-z0-9]+", spec.name))
        name = account.role(spec)
        for number, document in enumerate(account.rights(spec, _KEY), 1):
            policy = {
                "ManagedPolicyName": f"{name}-{number}",
                "PolicyDocument": document,
                "Roles": [{"Ref": f"Deployer{word}"}],
            }
            resources[f"Policy{word}{number}"] = {"Type": "AWS::IAM::ManagedPolicy", "Properties": policy}
        role = {
            "RoleName": name,
            "AssumeRolePolicyDocument": account.trusted(spec),
            "PermissionsBoundary": {"Ref": "DeployersBoundary"},
            "MaxSessionDuration": SESSION_SECONDS,
        }
        resources[f"Deployer{word}"] = {"Type": "AWS::IAM::Role", "Properties": role}
        outputs[f"Deployer{word}Arn"] = {"Value": {"Fn::GetAtt": [f"Deployer{word}", "Arn"]}}
    return json.dumps({**template, "Resources": resources, "Outputs": outputs}, indent=1) + "\n"


def _state(account: AwsAccount) -> dict[str, Any]:
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
        "StateKeyAlias": {"Type": "AWS::KMS::Alias", "Properties": alias},
        "StateBucket": {"Type": "AWS::S3::Bucket", **_KEPT, "Properties": bucket},
        "StateBucketPolicy": {"Type": "AWS::S3::BucketPolicy", "Properties": policy},
    }


def _boundaries(account: AwsAccount) -> dict[str, Any]:
    documents = {
        "DeployersBoundary": (account.boundary, account.deployers_boundary(_KEY)),
        "RolesBoundary": (account.roles_boundary, account.created_roles_boundary(_KEY)),
    }
    return {
        word: {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {"ManagedPolicyName": name, "PolicyDocument": document},
        }
        for word, (name, document) in documents.items()
    }


def _budget(account: AwsAccount) -> dict[str, Any]:
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
        "BudgetName": f"trainstack-{account.client}",
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": account.place.monthly_usd, "Unit": "USD"},
    }
    properties = {"Budget": budget, "NotificationsWithSubscribers": notifications}
    return {"Type": "AWS::Budgets::Budget", "Properties": properties}
