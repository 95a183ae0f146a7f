"""Options of all resources on AWS: their provider, and the permissions boundary of roles."""

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from infra.stackspec.aws.cloud import AwsSpec

_ROLE = "aws:iam/role:Role"


def on_aws(on: AwsSpec, provider: aws.Provider, *others: kubernetes.Provider) -> pulumi.ResourceOptions:
    """Options of a component, which its children inherit.

    The provider of AWS has default tags, but no default boundary: a role has it as a property of its own.
    """

    def bounded(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.type_ != _ROLE:
            return None
        props = {**args.props, "permissions_boundary": on.permissions_boundary}
        return pulumi.ResourceTransformationResult(props, args.opts)

    transformations: list[pulumi.ResourceTransformation] = [bounded] if on.permissions_boundary else []
    return pulumi.ResourceOptions(providers=[provider, *others], transformations=transformations)
