"""Policies that keep a team's namespace closed: what is published, and who connects (pure)."""

from components.kubernetes.queueing.policy import Body, Policy, rule

SERVICES, ROUTES, NETWORK = "trainstack-services", "trainstack-routes", "trainstack-network"
_CHANGES = ("CREATE", "UPDATE")
# API groups whose every object publishes something or changes the network: Gateway API, those of GKE, the
# AWS load balancer controller, the VPC CNI, Cilium, Calico, external-dns, Istio. `edit` grants none of them;
# a chart that is installed later may add some to it.
_GROUPS = (
    *("gateway.networking.k8s.io", "gateway.networking.x-k8s.io", "networking.gke.io", "net.gke.io"),
    *("cloud.google.com", "elbv2.k8s.aws", "gateway.k8s.aws", "networking.k8s.aws", "cilium.io"),
    *("crd.projectcalico.org", "projectcalico.org", "externaldns.k8s.io", "networking.istio.io"),
)
_REACH = "connect with `kubectl port-forward`; administrators publish from a namespace of their own"


def policies(member: str) -> list[Policy]:
    """All of them; `member`: CEL, true for requests of members."""
    return [_services(member), _routes(member), _network(member)]


def _services(member: str) -> Policy:
    return Policy(
        SERVICES,
        [rule("", "services", operations=_CHANGES)],
        [
            (
                "object.spec.?type.orValue('ClusterIP') == 'ClusterIP'",
                f"Services of type ClusterIP only: {_REACH}",
            ),
            (
                "object.spec.?externalIPs.orValue([]).size() == 0",
                f"no externalIPs, which redirect traffic of other pods: {_REACH}",
            ),
        ],
        only_from=member,
    )


def _routes(member: str) -> Policy:
    routes: Body = {**rule("", "*", operations=_CHANGES), "apiGroups": list(_GROUPS)}
    ingresses = rule("networking.k8s.io", "ingresses", operations=_CHANGES)
    return Policy(
        ROUTES, [ingresses, routes], [("false", f"teams publish nothing: {_REACH}")], only_from=member
    )


def _network(member: str) -> Policy:
    """Members narrow who connects to their pods. Policies add up: each one could open the namespace."""
    within = (
        "object.spec.?ingress.orValue([]).all(rule, rule.?from.orValue([]).size() > 0 &&"
        " rule.from.all(peer, has(peer.podSelector) && !has(peer.namespaceSelector)))"
    )
    return Policy(
        NETWORK,
        [rule("networking.k8s.io", "networkpolicies", operations=_CHANGES)],
        [
            (
                within,
                "ingress only from pods of this namespace: name peers by podSelector, not by"
                " namespaceSelector or ipBlock",
            )
        ],
        only_from=member,
    )
