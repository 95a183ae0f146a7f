"""JobSet, Kueue, and the Job that ends once Kueue's webhooks answer: nothing of its kinds is made before."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
from pulumi_kubernetes import batch, core, meta, rbac

from components.kubernetes.charts import charts, release
from components.kubernetes.queueing.kueue import API_VERSION, Body
from components.kubernetes.waiting.job import Waiting, digest, program, waiting_job

NAME = "kueue-ready"
_FLAVORS = "resourceflavors"
_RBAC = "rbac.authorization.k8s.io"
# Endpoints, certificates and the caches of every API server take seconds in a cluster that is well.
LIMIT_S = 300

_JOBSET_VALUES = {
    "controller": {"replicas": 2, "podDisruptionBudget": {"enabled": True, "minAvailable": 1}},
}

Child = Callable[..., pulumi.ResourceOptions]


def controller(
    name: str, values: Mapping[str, Any], flavor: Body, image: pulumi.Input[str], child: Child
) -> batch.v1.Job:
    """Kueue's release; what depends on the returned Job finds its webhooks answering (docs/adr/0012).

    The Job asks what would become of the ResourceFlavor `flavor`: of the kinds that are made first, the one
    with a mutating and a validating webhook (kubernetes-sigs/kueue v0.19.2,
    charts/kueue/templates/webhook/manifests.yaml). Those of the other kinds have the same Service, and the
    same certificate in the same two configurations. Another release, or another flavor, is another Job.
    """
    chart = charts()["kueue"]
    namespace = core.v1.Namespace(
        f"{name}-namespace", metadata=meta.v1.ObjectMetaArgs(name=chart.namespace), opts=child()
    )
    # Kueue looks for the kinds that it queues when it starts.
    inside = child(pulumi.ResourceOptions(depends_on=[namespace, _jobset(name, child)]))
    installed = release(name, "kueue", values, inside)
    asked = json.dumps(flavor, sort_keys=True)
    found = digest(chart.version, json.dumps(values, sort_keys=True), asked, *program("dry_run").values())
    waits = Waiting(
        program="dry_run",
        arguments={"path": f"/apis/{API_VERSION}/{_FLAVORS}", "object": asked, "seconds": str(LIMIT_S)},
        name=f"{NAME}-{found}",
        # Kueue manages only namespaces with its label, so this pod waits for nobody.
        namespace=chart.namespace,
        account=NAME,
        image=image,
        limit_s=LIMIT_S,
    )
    ready = f"{name}-ready"
    return waiting_job(ready, waits, [installed, *_rights(ready, chart.namespace, inside, child)], child)


def _jobset(name: str, child: Child) -> pulumi.Resource:
    """JobSet, as which runs of several nodes are started."""
    namespace = core.v1.Namespace(
        f"{name}-jobset-namespace",
        metadata=meta.v1.ObjectMetaArgs(name=charts()["jobset"].namespace),
        opts=child(),
    )
    opts = child(pulumi.ResourceOptions(depends_on=[namespace]))
    return release(f"{name}-jobset", "jobset", _JOBSET_VALUES, opts)


def _rights(name: str, namespace: str, inside: pulumi.ResourceOptions, child: Child) -> list[pulumi.Resource]:
    """An account that may create ResourceFlavors, which is what a dry run asks for, and nothing else."""
    metadata = meta.v1.ObjectMetaArgs(name=NAME)
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=namespace),
        automount_service_account_token=False,
        opts=inside,
    )
    group = API_VERSION.partition("/")[0]
    role = rbac.v1.ClusterRole(
        f"{name}-role",
        metadata=metadata,
        rules=[rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[_FLAVORS], verbs=["create"])],
        opts=child(),
    )
    binding = rbac.v1.ClusterRoleBinding(
        f"{name}-binding",
        metadata=metadata,
        role_ref=rbac.v1.RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=NAME),
        subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=NAME, namespace=namespace)],
        opts=child(pulumi.ResourceOptions(depends_on=[role, account])),
    )
    return [binding]
