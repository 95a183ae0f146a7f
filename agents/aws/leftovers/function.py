"""AWS Lambda function: deletes apps, spaces and security groups of a SageMaker domain before its deletion.

Members create spaces and apps, so they are not in the engine's state, and a profile with an app cannot be
deleted ("ResourceInUse: Unable to delete UserProfile ... App(s) are associated",
aws/amazon-sagemaker-feedback issue 113). The two groups of the home file system outlive it and refer to each
other, so that neither can be deleted before both have lost their rules; they hold the VPC.

The engine calls it by `aws:lambda/invocation:Invocation` (lifecycle CRUD); `tf.action` names the operation.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

# Deletion of an app takes minutes, so this is a few hundred requests.
_PAUSE_S = 2.0
# Part of the function's time limit that is reserved for its response.
_ANSWER_S = 30.0
_GROUPS = ("security-group-for-inbound-nfs-d-*", "security-group-for-outbound-nfs-d-*")
_HELD, _GONE = "DependencyViolation", "InvalidGroup.NotFound"


class StillThereError(Exception):
    """Resources were not deleted in time; the next destroy continues."""


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Clean up when the resource behind the call is deleted; otherwise do nothing.

    `event` has `domain` (deletes its apps and spaces) or `vpc` (deletes its groups). Raises StillThereError.
    """
    if event.get("tf", {}).get("action") != "delete":
        return {"removed": []}
    import boto3  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - of the function's image

    def left_s() -> float:
        return float(context.get_remaining_time_in_millis()) / 1000 - _ANSWER_S

    if "domain" in event:
        removed = empty_domain(boto3.client("sagemaker"), str(event["domain"]), left_s)
    else:
        removed = remove_groups(boto3.client("ec2"), str(event["vpc"]), left_s)
    sys.stdout.write(json.dumps({"event": dict(event), "removed": removed}) + "\n")
    return {"removed": removed}


def empty_domain(
    sagemaker: Any, domain: str, left_s: Callable[[], float], pause: Callable[[float], None] = time.sleep
) -> list[str]:
    """Delete every app, then every space of a domain, and wait until they are gone; returns their names."""
    removed: list[str] = []
    while apps := [row for row in _rows(sagemaker, "list_apps", "Apps", domain) if _lives(row)]:
        for row in apps:
            if row["Status"] == "InService":
                keys = ("DomainId", "UserProfileName", "SpaceName", "AppType", "AppName")
                sagemaker.delete_app(**{key: row[key] for key in keys if row.get(key)})
                removed.append(f"app {row.get('SpaceName') or row.get('UserProfileName')}/{row['AppName']}")
        _wait(left_s, pause, f"{len(apps)} apps of {domain}")
    while spaces := _rows(sagemaker, "list_spaces", "Spaces", domain):
        for row in spaces:
            if row.get("Status") != "Deleting":
                sagemaker.delete_space(DomainId=domain, SpaceName=row["SpaceName"])
                removed.append(f"space {row['SpaceName']}")
        _wait(left_s, pause, f"{len(spaces)} spaces of {domain}")
    return removed


def remove_groups(
    ec2: Any, vpc: str, left_s: Callable[[], float], pause: Callable[[float], None] = time.sleep
) -> list[str]:
    """Delete the groups of home file systems in a VPC, once nothing is in them; returns their names."""
    removed: list[str] = []
    while groups := _groups(ec2, vpc):
        for group in groups:
            _without_rules(ec2, group)
        for group in groups:
            try:
                ec2.delete_security_group(GroupId=group["GroupId"])
                removed.append(str(group["GroupName"]))
            except ec2.exceptions.ClientError as error:
                if error.response["Error"]["Code"] not in (_HELD, _GONE):
                    raise
        if not _groups(ec2, vpc):
            return removed
        _wait(left_s, pause, f"the groups of a home file system in {vpc}, which its interfaces still use")
    return removed


def _lives(row: Mapping[str, Any]) -> bool:
    """Return whether an app needs deletion; deleted and failed ones are listed for a day."""
    return row["Status"] not in ("Deleted", "Failed")


def _rows(sagemaker: Any, operation: str, key: str, domain: str) -> list[dict[str, Any]]:
    pages = sagemaker.get_paginator(operation).paginate(DomainIdEquals=domain)
    return [row for page in pages for row in page[key]]


def _groups(ec2: Any, vpc: str) -> list[dict[str, Any]]:
    filters = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "group-name", "Values": list(_GROUPS)}]
    pages = ec2.get_paginator("describe_security_groups").paginate(Filters=filters)
    return [group for page in pages for group in page["SecurityGroups"]]


def _without_rules(ec2: Any, group: Mapping[str, Any]) -> None:
    if group["IpPermissions"]:
        ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=group["IpPermissions"])
    if group["IpPermissionsEgress"]:
        ec2.revoke_security_group_egress(GroupId=group["GroupId"], IpPermissions=group["IpPermissionsEgress"])


def _wait(left_s: Callable[[], float], pause: Callable[[float], None], what: str) -> None:
    if left_s() < _PAUSE_S:
        raise StillThereError(f"{what} are still there; run destroy again")
    pause(_PAUSE_S)
