"""The objects of a composed component, as they go to an API server."""

import json

from rehearsal.controlplane.api import Object
from tests.components.graph import Graph

# In the order in which they are made; what is in use is deleted the other way round.
_ORDER = (
    "Namespace", "LimitRange", "ResourceQuota", "NetworkPolicy", "RoleBinding", "Topology",
    "WorkloadPriorityClass", "MultiKueueCluster", "MultiKueueConfig", "AdmissionCheck", "ResourceFlavor",
    "Cohort", "ClusterQueue", "LocalQueue",
)  # fmt: skip


def manifests(graph: Graph) -> list[Object]:
    """The Kubernetes objects that a graph consists of, in an order in which they can be made."""
    found = []
    for asked in graph.cloud.asked:
        if asked.type.startswith("kubernetes:") and not asked.type.endswith(":Release"):
            _, api_version, kind = asked.type.split(":")
            # The engine's numbers are all floats.
            properties = json.loads(json.dumps(asked.properties), parse_float=_whole)
            version = api_version.removeprefix("core/")
            found.append({**properties, "apiVersion": version, "kind": kind})
    return sorted(found, key=_turn)


def _turn(body: Object) -> int:
    return _ORDER.index(body["kind"]) if body["kind"] in _ORDER else len(_ORDER)


def _whole(text: str) -> int | float:
    return int(float(text)) if float(text).is_integer() else float(text)
