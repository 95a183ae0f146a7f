"""Resources of AWS PCS through Cloud Control, which pulumi-aws has instead of types of its own (ADR 96).

`aws.cloudcontrol.Resource` fetches the schema of the type, refuses a state that does not match it, and
replaces the resource where a create-only property changes (hashicorp/terraform-provider-aws
internal/service/cloudcontrol/resource.go, `resourceResourceCustomizeDiffSchemaDiff`). It waits up to two
hours (DefaultTimeout there). It does not compare live properties with the desired state: drift is not seen.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pulumi
import pulumi_aws as aws

from components.base import Component, Options

Kind = Literal["Cluster", "ComputeNodeGroup", "Queue"]


def pcs_resource(
    component: Component,
    name: str,
    kind: Kind,
    state: Mapping[str, Any],
    *,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
    opts: Options = None,
) -> aws.cloudcontrol.Resource:
    """A cluster, group or queue. Default tags of the provider do not reach it, so it has all `tags`."""
    slurm = {**state.get("SlurmConfiguration", {}), "SlurmCustomSettings": custom(settings)}
    whole = {**state, "SlurmConfiguration": slurm, "Tags": dict(tags)}
    return aws.cloudcontrol.Resource(
        name,
        type_name=f"AWS::PCS::{kind}",
        desired_state=pulumi.Output.json_dumps(whole),
        opts=component.child(opts),
    )


def custom(settings: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
    """Settings of Slurm as the service takes them."""
    return [{"ParameterName": key, "ParameterValue": value} for key, value in settings.items()]


def read(resource: aws.cloudcontrol.Resource, name: str) -> pulumi.Output[str]:
    """A read-only property such as `Id` or `Arn`."""
    return pulumi.Output.json_loads(resource.properties).apply(lambda found: str(found[name]))
