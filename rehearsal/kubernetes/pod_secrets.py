"""Secrets that pods write and read; they belong to no program."""

from collections.abc import Mapping
from typing import Any

from rehearsal.kubernetes.api import objects
from rehearsal.kubernetes.clusters import PACKAGE, KubeCluster
from rehearsal.kubernetes.kinds import parse

Object = Mapping[str, Any]
_SECRET = "kubernetes:core/v1:Secret"  # noqa: S105 - a type's token
_KIND = parse(_SECRET)


def get(cluster: KubeCluster, namespace: str, name: str) -> Object | None:
    """A Secret in the API server's form, None when there is none."""
    record = cluster.get("Secret", namespace, name)
    return record.outputs if record else None


def create(cluster: KubeCluster, namespace: str, new: Object) -> Object | None:
    """A new Secret, deleted with its namespace; None when the name is in use."""
    name = str(new["metadata"]["name"])
    if cluster.get("Secret", namespace, name):
        return None
    inputs = dict(new)
    record = cluster.state.insert(
        package=PACKAGE,
        type=_SECRET,
        scope=cluster.scope,
        id=f"{namespace}/{name}",
        urn="",
        name=name,
        inputs=inputs,
        outputs=objects.born(_KIND, inputs, namespace),
    )
    return record.outputs


def replace(cluster: KubeCluster, namespace: str, name: str, new: Object) -> Object | None:
    """The Secret with new content; None when there is none."""
    record = cluster.get("Secret", namespace, name)
    if record is None:
        return None
    inputs = dict(new)
    outputs = objects.changed(_KIND, record.outputs, inputs)
    return cluster.state.replace(record, inputs=inputs, outputs=outputs).outputs
