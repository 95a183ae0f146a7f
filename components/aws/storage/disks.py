"""The default storage class, for claims without one."""

from typing import TypedDict

import pulumi
from pulumi_kubernetes import meta, storage

from components.base import Component, Options

NAME = "disk"
_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


class AwsDisksArgs(TypedDict):
    """Arguments of `AwsDisks`."""

    key_arn: pulumi.Input[str]
    """Key of the volumes: one that the driver may use."""


class AwsDisks(Component):
    """The cluster's default storage class: encrypted gp3 volumes, made in the zone of the first pod.

    A volume of EBS does not leave its zone, so its pod restarts there. Needs a Kubernetes provider.
    """

    storage_class: pulumi.Output[str]
    """Name of the class."""

    def __init__(self, name: str, args: AwsDisksArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        made = storage.v1.StorageClass(
            f"{name}-class",
            metadata=meta.v1.ObjectMetaArgs(name=NAME, annotations=_DEFAULT),
            provisioner="ebs.csi.aws.com",
            parameters={"type": "gp3", "encrypted": "true", "kmsKeyId": args["key_arn"]},
            volume_binding_mode="WaitForFirstConsumer",
            allow_volume_expansion=True,
            reclaim_policy="Delete",
            opts=self.child(),
        )
        self.storage_class = made.metadata.apply(lambda metadata: str(metadata.name))
        self.register_declared()
