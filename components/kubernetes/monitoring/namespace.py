"""The namespace of monitoring and its network policy."""

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi_kubernetes import core, networking

from components.base import Child
from components.kubernetes.monitoring.names import NAMESPACE, PROMETHEUS_PORT, QUERIES_LABEL
from components.kubernetes.network_policies import METRICS_LABEL, out_to_dns, restricted
from components.kubernetes.tracking.pod import AgentArgs

# Ports of scraped targets: kubelets, the exporters of nodes and GPUs, controllers, programs of ours.
SCRAPED_PORTS = (10250, 9100, 9400, 8443, 8080)
# The API server, and the connections of Grafana and Alertmanager to a cloud.
_HTTPS = 443


def home(name: str, agents: Sequence[AgentArgs], child: Child) -> list[pulumi.Resource]:
    """The namespace and the policy of all of its pods; its objects come after both.

    Ingress: pods of the namespace, and to Prometheus those of namespaces with `QUERIES_LABEL`. Browsers use a
    port-forward, which the node opens. Egress: each other, DNS, HTTPS, `agents` for credentials, and every
    scraped port: addresses of pods change.
    """
    labels = {**restricted(), METRICS_LABEL: "allowed"}
    space = core.v1.Namespace(
        f"{name}-namespace", metadata={"name": NAMESPACE, "labels": labels}, opts=child()
    )
    # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
    spec: Any = {
        "pod_selector": {},
        "policy_types": ["Ingress", "Egress"],
        "ingress": [
            {"from_": [{"pod_selector": {}}]},
            {
                "from_": [{"namespace_selector": {"match_labels": {QUERIES_LABEL: "allowed"}}}],
                "ports": [{"port": PROMETHEUS_PORT, "protocol": "TCP"}],
            },
        ],
        "egress": [
            {"to": [{"pod_selector": {}}]},
            *out_to_dns(),
            {"ports": [{"port": port, "protocol": "TCP"} for port in (_HTTPS, *SCRAPED_PORTS)]},
            *(
                {
                    "to": [{"ip_block": {"cidr": agent["cidr"]}}],
                    "ports": [{"port": agent["port"], "protocol": "TCP"}],
                }
                for agent in agents
            ),
        ],
    }
    policy = networking.v1.NetworkPolicy(
        f"{name}-policy",
        metadata={"name": "monitoring", "namespace": NAMESPACE},
        spec=spec,
        opts=child(pulumi.ResourceOptions(depends_on=[space])),
    )
    return [space, policy]
