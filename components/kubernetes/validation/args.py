"""Arguments of a validation on a cluster."""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import pulumi

from components.kubernetes.offers import NodeOffer


class SmokeTestArgs(TypedDict):
    """Arguments of `SmokeTest`."""

    pool: str
    """Name of the pool to validate."""
    namespace: pulumi.Input[str]
    """Namespace of the Job, with the queue in it; from a `SmokeHome`."""
    queue: pulumi.Input[str]
    """LocalQueue that admits the Job."""
    priority: pulumi.Input[str]
    """Kueue priority class of the Job."""
    plan: pulumi.Input[Mapping[str, Any]]
    """The run's plan (schema trainstack.smoke-plan/1). Other arguments (nodes, GPUs, image, time limit,
    code) are filled in here. Any change of it makes the next `up` validate again."""
    image: pulumi.Input[str]
    """Training image, by digest: a changed tag would not be noticed."""
    watch_image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run: of the pod that watches the Job."""
    nodes: int
    """Nodes to run on, one pod each."""
    node: NodeOffer
    """Resources of a node; each pod takes all of it. Half of the memory may be shared memory."""
    pool_labels: Mapping[str, str]
    """Labels of the pool's nodes."""
    topology_level: NotRequired[str]
    """Node label of the network layer to stay within if possible; only for a pool with a topology."""
    tracking_url: pulumi.Input[str]
    """URL of MLflow for pods."""
    environment: Mapping[str, pulumi.Input[str]]
    """Variables with which the service account `smoke` accesses the cloud."""
    login_secret: pulumi.Input[str]
    """Secret in the namespace with MLflow's user and password, in the variables that its clients read."""
    pvc_name: NotRequired[pulumi.Input[str]]
    """Claim in the namespace for results and checkpoints; without it they are deleted with the pods."""
    pvc_folder: NotRequired[str]
    """Folder of the claim to write to, such as one that is linked to a bucket; default: its root."""
    provisioned: NotRequired[bool]
    """Whether the queue requests the nodes before it admits the Job: it then writes more into it. Default
    False."""
    timeout_s: int
    """Limit of the run itself, seconds."""
    queue_timeout_s: NotRequired[int]
    """Limit of waiting for admission, seconds."""
    startup_timeout_s: NotRequired[int]
    """Limit of starting the pods, seconds."""
