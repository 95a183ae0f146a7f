"""A cluster as a stack asks for it, with consumers of its outputs."""

from collections.abc import Mapping
from typing import Any, cast

import pulumi

from components.gcp.cluster.cluster_args import GcpClusterArgs
from components.gcp.cluster.gke import GcpCluster
from tests.components.gcp.computed import COMPUTED, NUMBER, PROJECT
from tests.components.graph import Graph, deploy_graph

DEPLOYER = "serviceAccount:deployer@ml-ci.iam.gserviceaccount.com"
PLATFORM = "group:platform@example.com"
MAINTENANCE = {"days": ["SA", "SU"], "start": "02:00", "hours": 6, "hold_nodes": True}
POOL = {"machine": "e2-standard-4", "min_nodes": 2, "max_nodes": 6}
WITH_ADDRESS = {"endpoint": "ip", "api_access": ["203.0.113.0/24", "198.51.100.7/32"]}
ZONES = ["us-central1-a", "us-central1-b", "us-central1-c"]


class Consumer(pulumi.CustomResource):
    def __init__(self, name: str, **inputs: pulumi.Input[Any]) -> None:
        super().__init__("test:index:Consumer", name, inputs)


def arguments(**changes: Any) -> GcpClusterArgs:
    args: dict[str, Any] = {
        "project": PROJECT,
        "project_number": NUMBER,
        "region": "us-central1",
        "name": "dev-gcp",
        "kubernetes_version": "1.35",
        "channel": "regular",
        "network": f"projects/{PROJECT}/global/networks/dev",
        "subnetwork": f"projects/{PROJECT}/regions/us-central1/subnetworks/dev",
        "pod_range_name": "pods",
        "service_range_name": "services",
        "zones": ZONES,
        "pods_per_node": 32,
        "endpoint": "dns",
        "api_access": [],
        "admins": [DEPLOYER, PLATFORM],
        "maintenance": MAINTENANCE,
        "log_retention_days": 45,
        "system_pool": POOL,
        "labels": {"owner": "ml"},
    }
    return cast(GcpClusterArgs, {**args, **changes})


def cluster(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = GcpCluster("dev-cluster", arguments(**changes))
        Consumer("kubernetes-provider", endpoint=made.endpoint)
        Consumer("certificate", ca=made.certificate_authority)
        Consumer("gpu-nodes", account=made.node_service_account)
        Consumer("disk", key=made.key_id)
        Consumer("pod", pool=made.workload_pool)
        return {
            "name": made.cluster_name,
            "id": made.cluster_id,
            "location": made.location,
            "endpoint": made.endpoint,
            "ca": made.certificate_authority,
            "pool": made.workload_pool,
            "account": made.node_service_account,
            "key": made.key_id,
        }

    return deploy_graph(program, COMPUTED)
