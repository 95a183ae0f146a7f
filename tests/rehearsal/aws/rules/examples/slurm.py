"""Examples of the rules about AWS PCS, whose resources are desired states of Cloud Control."""

import json
from typing import Any

from tests.rehearsal.aws.rules.world import DROP, Example

_TYPE, _PATH = "cloudcontrol/resource:Resource", "desiredState"
_SCHEDULER = {"Type": "SLURM", "Version": "25.11"}
_CLUSTER = {"Name": "further", "Size": "SMALL", "Scheduler": _SCHEDULER, "Networking": {"SubnetIds": ["$a"]}}
_GROUP = {
    "ClusterId": "$pcs",
    "Name": "p4d",
    "CustomLaunchTemplate": {"TemplateId": "$lt_plain", "Version": "1"},
    "IamInstanceProfileArn": "$pcs_profile.arn",
    "InstanceConfigs": [{"InstanceType": "p4d.24xlarge"}],
    "SubnetIds": ["$a"],
}
_QUEUE = {"ClusterId": "$pcs", "Name": "p4d"}


def _state(kind: str, base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    state = {key: value for key, value in {**base, **changes}.items() if value is not DROP}
    return {"typeName": f"AWS::PCS::{kind}", _PATH: json.dumps(state)}


def _nodes(most: int) -> dict[str, Any]:
    scaling = {"MinInstanceCount": 0, "MaxInstanceCount": most}
    return _state("ComputeNodeGroup", _GROUP, ScalingConfiguration=scaling)


def _setting(kind: str, base: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    custom = [{"ParameterName": name, "ParameterValue": value}]
    return _state(kind, base, SlurmConfiguration={"SlurmCustomSettings": custom})


EXAMPLES = {
    "AWS-PCS-001": Example(
        _TYPE, _PATH, _state("Cluster", _CLUSTER, Size=DROP), _state("Cluster", _CLUSTER, Size="LARGE")
    ),
    "AWS-PCS-002": Example(
        _TYPE,
        _PATH,
        _setting("Cluster", _CLUSTER, "SlurmdTimeout", "1"),
        _setting("Cluster", _CLUSTER, "JobRequeue", "1"),
    ),
    "AWS-PCS-003": Example(
        _TYPE,
        _PATH,
        _state("Cluster", _CLUSTER, Scheduler={**_SCHEDULER, "Version": "22.05"}),
        _state("Cluster", _CLUSTER, Scheduler=_SCHEDULER),
    ),
    "AWS-PCS-004": Example(_TYPE, _PATH, _nodes(33), _nodes(32)),
    "AWS-PCS-005": Example(
        _TYPE,
        _PATH,
        _state("Queue", _QUEUE, ComputeNodeGroupConfigurations=[{"ComputeNodeGroupId": "pcs_none"}]),
        _state("Queue", _QUEUE),
    ),
    "AWS-PCS-006": Example(
        _TYPE,
        _PATH,
        _setting("Queue", _QUEUE, "AllowQos", "vision"),
        _setting("Queue", _QUEUE, "AllowQos", "normal"),
    ),
}
