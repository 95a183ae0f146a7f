"""Settings of the Kubernetes provider that replace all of its resources.

Source: pulumi-kubernetes@94977969, provider/pkg/provider/provider.go (DiffConfig).
"""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties, RefusalError
from rehearsal.kubernetes import clusters

_IDENTIFIER = "clusterIdentifier"
_CHOICE = ("kubeconfig", "context", "cluster")


def replacing(old: Properties, new: Properties) -> tuple[str, ...]:
    """The changed settings that mean another cluster.

    With the same identifier it is the same cluster, whatever its address. Without one, another or an unknown
    address or authority is another cluster.
    """
    before, after = old.get(_IDENTIFIER), new.get(_IDENTIFIER)
    if after is not None and before == after:
        return ()
    found = [_IDENTIFIER] if before is not None and after is not None else []
    unknown = next((name for name in _CHOICE if new.get(name) is UNKNOWN), None)
    if unknown:
        return (*found, unknown)
    left, chosen = _active(old), _active(new)
    if left is not None and chosen is not None and left != chosen:
        found += [name for name in _CHOICE if old.get(name) != new.get(name)]
    return tuple(found)


def _active(settings: Properties) -> Mapping[str, Any] | None:
    try:
        return clusters.active(settings.get("kubeconfig"), settings.get("context"))
    except RefusalError:
        return None
