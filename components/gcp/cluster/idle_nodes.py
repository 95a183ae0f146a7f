"""The idle time of nodes, by the ComputeClass that GKE applies to pools and pods without another."""

from typing import TypedDict

import pulumi

from components.base import Component, Options
from components.kubernetes.manifest import Manifest

CLASS = "default"
"""Name of the class; a cluster has it only with `clusterAutoscaling.defaultComputeClassEnabled`."""


class GcpIdleNodesArgs(TypedDict):
    """The idle time."""

    minutes: int
    """Minutes until an unneeded node may be removed, 1 to 1440."""


class GcpIdleNodes(Component):
    """The cluster's default ComputeClass, with an idle time and nothing else.

    GKE's autoscaler takes the idle time of a node from the class of its pool: that of the pool's label
    `cloud.google.com/compute-class`, else the default one (k8s.io/gke-autoscaling/cluster-autoscaler
    pkg/computeclass/lister, `NodeGroupCrd`; `ScaleDownUnneededTime`). So pools get no label or taint, pods
    no selector, and nodes stay. Without `priorities` every pool may grow as before (`Rules`), and no pool is
    made (`nodePoolAutoCreation`). `ScaleUpAnyway` keeps the class healthy: with `DoNotScaleUp`, GKE reports
    one that names no pools as misconfigured (`napDisabledAndNoMatchingNodegroupsCheck`). Fields and bounds:
    GoogleCloudPlatform/compute-class-api@8067eaeb. Needs the Kubernetes provider. *Untested in a real
    project.*
    """

    def __init__(self, name: str, args: GcpIdleNodesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        body = {
            "apiVersion": "cloud.google.com/v1",
            "kind": "ComputeClass",
            "metadata": {"name": CLASS},
            "spec": {
                "autoscalingPolicy": {"consolidationDelayMinutes": args["minutes"]},
                "nodePoolAutoCreation": {"enabled": False},
                "whenUnsatisfiable": "ScaleUpAnyway",
            },
        }
        Manifest(f"{name}-class", body, self.child(pulumi.ResourceOptions(delete_before_replace=True)))
        self.register_declared()
