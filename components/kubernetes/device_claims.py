"""ResourceClaimTemplates: the devices of a pool's nodes, as pods claim them (Dynamic Resource Allocation)."""

from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from components.kubernetes.manifest import Manifest
from components.kubernetes.offers import FabricOffer, NodeOffer, claimed
from components.kubernetes.runtime_names import POOL_RUNTIME

Body = dict[str, Any]


def claimed_fabrics(pools: Mapping[str, NodeOffer]) -> Iterator[tuple[str, FabricOffer]]:
    """The pools whose devices pods claim, with their fabric; runs get none of shared GPUs."""
    for pool, offer in pools.items():
        fabric = offer.get("fabric")
        if fabric and claimed(fabric) and not offer.get("shared"):
            yield pool, fabric


def team_template(pool: str) -> str:
    """Name of the template of a pool in the namespaces of teams: that of the pool's runtime."""
    return f"{POOL_RUNTIME}{pool}"


def template_body(
    name: str,
    namespace: pulumi.Input[str],
    fabric: FabricOffer,
    labels: Mapping[str, str] | None = None,
) -> Body:
    """A template for all devices of a node: a claim of a pod, which takes the node as a whole."""
    exactly = {
        "deviceClassName": fabric["device_class"],
        # An exact count: Kueue cannot account for the mode "All".
        "allocationMode": "ExactCount",
        "count": fabric["count"],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace, **({"labels": dict(labels)} if labels else {})},
        "spec": {"spec": {"devices": {"requests": [{"name": fabric["kind"], "exactly": exactly}]}}},
    }


def claim_template(name: str, body: Body, opts: pulumi.ResourceOptions) -> Manifest:
    """The resource; a template cannot be changed in place."""
    replaced = pulumi.ResourceOptions(replace_on_changes=["spec"], delete_before_replace=True)
    return Manifest(name, body, pulumi.ResourceOptions.merge(opts, replaced))
