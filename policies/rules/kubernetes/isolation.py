"""Isolation of pods from their node and from other pods."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.kubernetes.objects import NAMESPACE, metadata, objects_in, spec
from policies.rules.kubernetes.pod_policies import lacking
from policies.rules.kubernetes.pods import KINDS, PodTemplate, containers, is_node_agent, templates
from policies.stack import Stack

_POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
_LEVEL = "pod-security.kubernetes.io/enforce"
_POOL_LABELS = (
    *("eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "karpenter.sh/nodepool"),
    "trainstack.dev/pool",
)
# Policies of other vendors, or of the whole cluster, which the rules do not evaluate.
_OTHER_POLICIES = (
    "kubernetes:cilium.io/v2:CiliumNetworkPolicy",
    "kubernetes:cilium.io/v2:CiliumClusterwideNetworkPolicy",
    "kubernetes:crd.projectcalico.org/v1:GlobalNetworkPolicy",
    "kubernetes:projectcalico.org/v3:GlobalNetworkPolicy",
    "kubernetes:projectcalico.org/v3:NetworkPolicy",
    "kubernetes:policy.networking.k8s.io/v1alpha1:AdminNetworkPolicy",
    "kubernetes:policy.networking.k8s.io/v1alpha1:BaselineAdminNetworkPolicy",
    "kubernetes:policy.networking.k8s.io/v1alpha2:ClusterNetworkPolicy",
    "kubernetes:networking.k8s.aws/v1alpha1:ApplicationNetworkPolicy",
    "kubernetes:networking.k8s.aws/v1alpha1:ClusterNetworkPolicy",
)


@CATALOG.rule_around(
    "MLS-K8S-01",
    "high",
    KINDS,
    "A privileged container is root of its node, with the data and credentials of every pod there.",
    "Leave out privileged; ask for a device as a resource, or for one capability such as IPC_LOCK.",
    ("CIS EKS 4.2.1", "CKV_K8S_16"),
)
def no_privileged_containers(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """No container is privileged, except daemons that manage the devices of their node."""
    for path, container, template in containers(resource):
        if is_node_agent(resource, container, stack.settings.node_agents):
            continue
        context = container.get("securityContext") or {}
        if context.get("privileged") is True:
            what = f"container {container.get('name')} is privileged"
            yield Violation(what, f"{path}.securityContext.privileged")
        # Pod Security Standards, "HostProcess": the same on Windows; the setting of the pod is the default.
        windows = context.get("windowsOptions") or {}
        pods = (template.spec.get("securityContext") or {}).get("windowsOptions") or {}
        if windows.get("hostProcess", pods.get("hostProcess")) is True:
            what = f"container {container.get('name')} is a process of its host"
            yield Violation(what, f"{path}.securityContext.windowsOptions.hostProcess")


@CATALOG.rule_around(
    "MLS-K8S-02",
    "high",
    KINDS,
    "Such a pod reads the traffic and memory of others, and no network policy applies to it.",
    "Leave out the field. Where a fabric needs the host's network, list its pool in host_network_pools.",
    ("CIS EKS 4.2.2", "CIS EKS 4.2.3", "CIS EKS 4.2.4", "CKV_K8S_19"),
)
def no_namespaces_of_the_host(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """No pod shares the network, processes or memory of its node, except on pools listed for NCCL."""
    for template in templates(resource):
        found = [key for key in ("hostNetwork", "hostPID", "hostIPC") if template.spec.get(key) is True]
        if not found:
            continue
        own = [container for _, container in template.containers()]
        if own and all(is_node_agent(resource, one, stack.settings.node_agents) for one in own):
            continue
        # NCCL uses the network and shared memory, but no processes of the host.
        listed = _is_bound(template, stack.settings.host_network_pools)
        for key in found:
            if not (listed and key in ("hostNetwork", "hostIPC")):
                yield Violation(f"its pods run with {key}", f"{template.path}.{key}")


def _is_bound(template: PodTemplate, pools: tuple[str, ...]) -> bool:
    chosen = template.spec.get("nodeSelector") or {}
    if any(chosen.get(label) in pools for label in _POOL_LABELS if label in chosen):
        return True
    required = ((template.spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    # A node has to match one of the terms, and of that all expressions.
    terms = required.get("nodeSelectorTerms") or ()
    return bool(terms) and all(_is_term_bound(term or {}, pools) for term in terms)


def _is_term_bound(term: Any, pools: tuple[str, ...]) -> bool:
    for expression in term.get("matchExpressions") or ():
        if expression and expression.get("key") in _POOL_LABELS and expression.get("operator") == "In":
            values = expression.get("values") or ()
            if values and all(value in pools for value in values):
                return True
    return False


@CATALOG.rule_around(
    "MLS-K8S-03",
    "high",
    (NAMESPACE,),
    "Without them any pod may be privileged, and every pod of the cluster may talk to it.",
    "Label it pod-security.kubernetes.io/enforce=baseline or restricted; add a policy of all pods.",
    ("CIS EKS 4.2.1", "CIS EKS 4.3.2"),
)
def namespaces_are_isolated(namespace: Resource, stack: Stack) -> Iterator[Violation]:
    """A namespace enforces a Pod Security Standard, or a policy does; a network policy denies by default."""
    if metadata(namespace).get("deletionTimestamp"):
        raise NotApplicableError("it is being deleted")
    level = (metadata(namespace).get("labels") or {}).get(_LEVEL)
    if level not in ("baseline", "restricted"):
        what = f"it enforces {level}, which is no limit" if level else "it enforces no Pod Security Standard"
        instead = lacking(namespace, stack)
        if instead is not None:
            yield Violation(f"{what}, and {instead}" if instead else what, "metadata.labels")
    policies = [policy for policy in objects_in(namespace, stack, _POLICY) if _is_about_ingress(policy)]
    # Policies add up: one that allows all ingress overrides the others.
    if any(_allows_all_ingress(policy) for policy in policies):
        yield Violation("a network policy allows all ingress to all of its pods", "metadata.name")
    elif not any(_is_of_all_pods(policy) for policy in policies):
        others = [kind for kind in _OTHER_POLICIES if stack.all(kind)]
        if others:
            raise UndeterminedError(f"{', '.join(others)} are not evaluated")
        yield Violation("no network policy denies ingress by default", "metadata.name")


def _is_about_ingress(policy: Resource) -> bool:
    # NetworkPolicySpec.policyTypes: by default Ingress, always.
    return "Ingress" in (spec(policy).get("policyTypes") or ["Ingress"])


def _is_of_all_pods(policy: Resource) -> bool:
    selector = spec(policy).get("podSelector") or {}
    return not (selector.get("matchLabels") or selector.get("matchExpressions"))


def _allows_all_ingress(policy: Resource) -> bool:
    rules = spec(policy).get("ingress") or ()
    open_rules = [rule for rule in rules if not (rule or {}).get("from") and not (rule or {}).get("ports")]
    return bool(open_rules) and _is_of_all_pods(policy)
