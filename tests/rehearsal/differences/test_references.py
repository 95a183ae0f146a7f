"""Values of `tools.sdk.defaults` that the SDKs do not document, against the API models of the services.

A value stands in the model's documentation as the default, is the minimum of a range, or is at
least one of the values that the API allows; the last two prove less, and are marked so.
"""

import re
from functools import cache
from typing import Any

import botocore.session
import pytest

from tools.sdk import defaults

_DISK = ("ec2", "EbsBlockDevice")
# Type and path -> service, shape, member, and how the model shows the value.
_MODELS = {
    ("ebs/volume:Volume", "iops"): ("ec2", "CreateVolumeRequest", "Iops", "default"),
    ("ebs/volume:Volume", "throughput"): ("ec2", "CreateVolumeRequest", "Throughput", "minimum"),
    ("ec2/instance:Instance", "tenancy"): ("ec2", "Placement", "Tenancy", "allowed"),
    ("ec2/instance:Instance", "instanceInitiatedShutdownBehavior"): (
        "ec2", "RunInstancesRequest", "InstanceInitiatedShutdownBehavior", "default",
    ),
    ("ec2/instance:Instance", "rootBlockDevice.iops"): (*_DISK, "Iops", "minimum"),
    ("ec2/instance:Instance", "rootBlockDevice.throughput"): (*_DISK, "Throughput", "minimum"),
    ("ec2/instance:Instance", "ebsBlockDevices.iops"): (*_DISK, "Iops", "minimum"),
    ("ec2/instance:Instance", "ebsBlockDevices.throughput"): (*_DISK, "Throughput", "minimum"),
    ("ec2/instance:Instance", "ebsBlockDevices.deleteOnTermination"): (
        "ec2", "EbsBlockDevice", "DeleteOnTermination", "allowed",
    ),
    ("lb/targetGroup:TargetGroup", "ipAddressType"): (
        "elbv2", "CreateTargetGroupInput", "IpAddressType", "default",
    ),
    ("autoscaling/group:Group", "defaultCooldown"): (
        "autoscaling", "CreateAutoScalingGroupType", "DefaultCooldown", "default",
    ),
    ("lambda/function:Function", "tracingConfig.mode"): ("lambda", "TracingConfig", "Mode", "allowed"),
}  # fmt: skip
ROWS = [
    (token, path, value)
    for token, paths in defaults._REFERENCES["aws"].items()
    for path, value in paths.items()
]


@cache
def _model(service: str) -> dict[str, Any]:
    loader = botocore.session.get_session().get_component("data_loader")
    found: dict[str, Any] = loader.load_service_model(service, "service-2")
    return found


@pytest.mark.parametrize(("token", "path", "value"), ROWS)
def test_a_value_is_that_of_the_api(token: str, path: str, value: object) -> None:
    service, shape, member, way = _MODELS[token, path]
    shapes = _model(service)["shapes"]
    field = shapes[shape]["members"][member]
    text = re.sub(r"<[^>]+>|,(?=\d{3})", "", field.get("documentation", ""))
    said = re.escape(str(value))
    if way == "default":
        assert re.search(rf"\b{said}\s*\(\s*default|[Dd]efault( value)?( is|:)\s*{said}\b", text)
    elif way == "minimum":
        assert re.search(rf"(Valid Range:\s*(Minimum value of )?|gp3\s*:\s*){said}\b", text)
    else:
        kind = shapes[field["shape"]]
        assert kind["type"] == "boolean" if isinstance(value, bool) else value in kind["enum"]
