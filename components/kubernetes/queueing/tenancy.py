"""The namespace of a queue's jobs, with its network policy, quota and role bindings."""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes import core, meta, networking, rbac

from components.kubernetes.people import RBAC, SubjectArgs, subjects
from components.kubernetes.queueing.kueue_values import MANAGED, MANAGED_LABEL

# Namespaces with this label may reach the tracking server.
TRACKING_LABEL = "trainstack.dev/tracking"
# Objects that the stack creates in a team's namespace: members use them, and cannot change or delete them.
GIVEN_LABEL, GIVEN = "trainstack.dev/given", "yes"
# ConfigMap with the address of the tracking server.
TRACKING = "mlflow"
# Requests of a container in a queue when it has none.
DEFAULT_REQUEST = {"cpu": "1", "memory": "2Gi"}
# Least requests of a pod. A node has room for some hundred pods, which no quota counts: with requests of
# nothing a team would take all of them. Of the pod, not of its containers: sidecars may request less.
LEAST_REQUEST = {"cpu": "100m"}
# Kubernetes' own role for users of a namespace, and that of Kueue's chart: jobs of all queued kinds, and read
# access to the queue.
_MEMBER_ROLES = ("edit", "kueue-batch-user-role")
# Time limit of the deletion of a namespace, in which every pod gets its grace period.
DELETION = "15m"
# Of the role that lets members see the queues of the cluster.
ONLOOKERS = "trainstack-queue-onlookers"
# Most objects of a namespace, finished jobs and their pods included: more than a team needs, and less than a
# loop that creates objects without end needs to fill the API server's store. Public addresses are none. Kinds
# of charts are not listed: a quota refuses them until its controller knows them, which takes minutes. Events
# are never counted (kubernetes v1.36 pkg/quota/v1/install/registry.go, `ignoredResources`); they end by
# themselves. Amounts as the API server returns them (30k), so that none differs from what it stores.
_MOST_OBJECTS = {
    "count/cronjobs.batch": "500",
    "count/deployments.apps": "500",
    "count/replicasets.apps": "5k",
    "count/statefulsets.apps": "500",
    "count/controllerrevisions.apps": "5k",
    "replicationcontrollers": "100",
    "configmaps": "2k",
    "secrets": "2k",
    "count/serviceaccounts": "100",
    "services": "500",
    "services.loadbalancers": "0",
    "services.nodeports": "0",
    "count/networkpolicies.networking.k8s.io": "100",
    "count/horizontalpodautoscalers.autoscaling": "500",
    "count/poddisruptionbudgets.policy": "100",
    "count/leases.coordination.k8s.io": "500",
    "count/resourceclaims.resource.k8s.io": "30k",
    "count/resourceclaimtemplates.resource.k8s.io": "500",
}
# Thousands of jobs, and of pods that have not ended, of all teams together, and of a team among many.
_MOST_JOBS, _MOST_PODS, _LEAST = 30, 20, 5
# The priority classes of every cluster (pkg/apis/scheduling/types.go), above any that users create.
_SYSTEM_PRIORITIES = ["system-cluster-critical", "system-node-critical"]


def tenant_namespace(
    name: str,
    namespace: str,
    labels: dict[str, str],
    opts: pulumi.ResourceOptions,
    *,
    teams: int,
    standard: str = "baseline",
    annotations: dict[str, str] | None = None,
) -> list[pulumi.Resource]:
    """A namespace whose every job is queued, with default requests, closed to other namespaces.

    There is no ResourceQuota on GPUs: a hard limit at the guaranteed share would forbid borrowing, and a
    higher one has no effect, because the queues admit nothing past the pools. No pod may have a priority of
    the system: the scheduler would preempt other teams' pods for it. Pods of one namespace may connect to
    each other freely: distributed training uses ports that no rule can name in advance. `teams`: their number
    in the cluster, which share Kueue's memory. `standard` is the Pod
    Security Standard: one other than `baseline` only where a policy replaces it (`node_access`).
    """
    owned = core.v1.Namespace(
        f"{name}-namespace",
        metadata=meta.v1.ObjectMetaArgs(
            name=namespace,
            annotations=annotations,
            labels={
                MANAGED_LABEL: MANAGED,
                TRACKING_LABEL: "allowed",
                # Many training images run as root: "restricted" only warns, it does not stop them.
                "pod-security.kubernetes.io/enforce": standard,
                "pod-security.kubernetes.io/warn": "restricted",
                **labels,
            },
        ),
        opts=pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(delete=DELETION))
        ),
    )
    inside = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[owned]))
    limits = core.v1.LimitRange(
        f"{name}-requests",
        metadata=meta.v1.ObjectMetaArgs(name="default-requests", namespace=namespace),
        spec=core.v1.LimitRangeSpecArgs(
            limits=[
                core.v1.LimitRangeItemArgs(type="Container", default_request=DEFAULT_REQUEST),
                core.v1.LimitRangeItemArgs(type="Pod", min=LEAST_REQUEST),
            ]
        ),
        opts=inside,
    )
    return [
        owned,
        limits,
        *_bounds(name, namespace, teams, inside),
        # Deleted with the namespace, so that it holds until the last pod has ended.
        _closed_to_others(
            name,
            namespace,
            pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(deleted_with=owned)),
        ),
    ]


def members(
    name: str, namespace: str, people: Sequence[SubjectArgs], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Permissions of a team's members in its namespace: all that jobs need, and nothing elsewhere."""
    return [
        rbac.v1.RoleBinding(
            f"{name}-{role}",
            metadata=meta.v1.ObjectMetaArgs(name=f"members-{role}", namespace=namespace),
            role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=role),
            subjects=subjects(people),
            opts=opts,
        )
        for role in _MEMBER_ROLES
    ]


def onlookers(
    name: str, people: Sequence[SubjectArgs], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """Cluster-wide read access of members of all teams: sizes of pools, and quota of each queue.

    Queues of other teams show amounts, never jobs. Without them the reason why a job waits could not be shown
    (`trainstack queue`). Positions in their own queue are readable by a role of Kueue's chart, part of
    `edit`.
    """
    role = rbac.v1.ClusterRole(
        f"{name}-onlookers",
        metadata=meta.v1.ObjectMetaArgs(name=ONLOOKERS),
        rules=[
            rbac.v1.PolicyRuleArgs(
                api_groups=["kueue.x-k8s.io"],
                resources=["clusterqueues", "cohorts", "resourceflavors", "topologies"],
                verbs=["get", "list", "watch"],
            )
        ],
        opts=opts,
    )
    bound = rbac.v1.ClusterRoleBinding(
        f"{name}-onlookers",
        metadata=meta.v1.ObjectMetaArgs(name=ONLOOKERS),
        role_ref=rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=ONLOOKERS),
        subjects=subjects(people),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[role])),
    )
    return [role, bound]


def _kept(teams: int) -> dict[str, str]:
    """Most jobs and pods of a team: Kueue has all of them in its memory (docs/adr/0063).

    Not `count/pods`, which counts ended pods, too (kubernetes v1.36.2 pkg/quota/v1/evaluator/core/pods.go):
    Kueue would admit a job that gets no pods, again and again, and it would hold GPUs for hours. Kubernetes
    itself deletes ended pods beyond 12,500 (pkg/controller/podgc).
    """
    most = {"count/jobs.batch": _MOST_JOBS, "pods": _MOST_PODS}
    return {key: f"{max(thousands // max(teams, 1), _LEAST)}k" for key, thousands in most.items()}


def _bounds(
    name: str, namespace: pulumi.Input[str], teams: int, opts: pulumi.ResourceOptions
) -> "list[core.v1.ResourceQuota]":  # in quotes: commands read constants here, without the SDK's half second
    """Quotas of pods with a priority of the system or rules about pods of other namespaces, and of objects.

    Such rules bind the scheduler: a pod that wants no other beside it in a zone keeps all others out of it.
    """
    selected = core.v1.ScopedResourceSelectorRequirementArgs(
        scope_name="PriorityClass", operator="In", values=_SYSTEM_PRIORITIES
    )
    priorities = core.v1.ResourceQuotaSpecArgs(
        hard={"pods": "0"}, scope_selector=core.v1.ScopeSelectorArgs(match_expressions=[selected])
    )
    affinity = core.v1.ResourceQuotaSpecArgs(hard={"pods": "0"}, scopes=["CrossNamespacePodAffinity"])
    objects = core.v1.ResourceQuotaSpecArgs(hard=_MOST_OBJECTS | _kept(teams))
    named = (
        ("priorities", "no-system-priority", priorities),
        ("affinity", "no-affinity-across-namespaces", affinity),
        ("objects", "objects", objects),
    )
    return [
        core.v1.ResourceQuota(
            f"{name}-{part}",
            metadata=meta.v1.ObjectMetaArgs(name=called, namespace=namespace),
            spec=spec,
            opts=opts,
        )
        for part, called, spec in named
    ]


def _closed_to_others(
    name: str, namespace: pulumi.Input[str], opts: pulumi.ResourceOptions
) -> networking.v1.NetworkPolicy:
    return networking.v1.NetworkPolicy(
        f"{name}-ingress",
        metadata=meta.v1.ObjectMetaArgs(
            name="same-namespace-only", namespace=namespace, labels={GIVEN_LABEL: GIVEN}
        ),
        spec=networking.v1.NetworkPolicySpecArgs(
            pod_selector=meta.v1.LabelSelectorArgs(),
            policy_types=["Ingress"],
            ingress=[
                networking.v1.NetworkPolicyIngressRuleArgs(
                    from_=[networking.v1.NetworkPolicyPeerArgs(pod_selector=meta.v1.LabelSelectorArgs())]
                )
            ],
        ),
        opts=opts,
    )
