"""Kueue, and the Job that waits until Kueue's webhooks respond: objects of its kinds come after it."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes import batch

from components.base import Child
from components.kubernetes.charts import charts, release
from components.kubernetes.definitions.install import definitions
from components.kubernetes.network_policies import PlatformNetwork, controllers
from components.kubernetes.queueing.kueue import Body
from components.kubernetes.queueing.kueue_values import PORTS
from components.kubernetes.waiting.webhooks import DryRun, webhooks_answer

NAME = "kueue-ready"


def controller(
    name: str,
    values: Mapping[str, Any],
    flavor: Body,
    *,
    image: pulumi.Input[str],
    control_plane: PlatformNetwork,
    child: Child,
) -> batch.v1.Job:
    """Kueue's release; dependents of the returned Job find its webhooks responding.

    The Job sends a dry run of the ResourceFlavor `flavor`: of the kinds that are created first, the one
    with a mutating and a validating webhook (kubernetes-sigs/kueue v0.19.2,
    charts/kueue/templates/webhook/manifests.yaml). Those of the other kinds have the same Service, and the
    same certificate in the same two configurations.
    """
    chart = charts()["kueue"]
    fence = controllers(name, chart.namespace, PORTS, control_plane, child)
    inside = child(pulumi.ResourceOptions(depends_on=fence))
    asked = DryRun(
        account=NAME,
        namespace=chart.namespace,
        body=flavor,
        plural="resourceflavors",
        image=image,
        release=(chart.version, json.dumps(values, sort_keys=True)),
    )
    defined = definitions(f"{name}-definitions", "kueue", image, inside, child)
    after = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[defined]))
    installed = release(name, "kueue", values, after)
    return webhooks_answer(f"{name}-ready", asked, installed, inside, child)
