"""Warnings about roles of service accounts that IAM would not grant to their pods.

The API server accepts any annotation; the pods' first request to AWS is refused. Source:
awsdocs/amazon-eks-user-guide associate-service-account-role.adoc (trust policy);
aws/amazon-eks-pod-identity-webhook README (annotations); AWS STS API Reference, AssumeRoleWithWebIdentity.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.core.model import Call, Properties
from rehearsal.dataplane.aws.iam_policies import STS, pods_denied, role_record
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.kinds import HELM_RELEASE

_ACCOUNT = "kubernetes:core/v1:ServiceAccount"
_ROLE, _AUDIENCE = "eks.amazonaws.com/role-arn", "eks.amazonaws.com/audience"


def warn(call: Call, cluster: KubeCluster, inputs: Properties) -> None:
    """Warn about roles that the pods of a new or changed object will not get."""
    for namespace, account, annotations in _annotated(call.type, inputs):
        role = role_record(cluster.state, str(annotations[_ROLE]))
        if role is None:
            continue  # the trust policies of roles outside of the programs are unknown
        audience = str(annotations.get(_AUDIENCE) or STS)
        if denied := pods_denied(role, cluster.record, namespace, account, audience):
            call.log("warning", denied)


def _annotated(token: str, inputs: Properties) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(namespace, name, annotations) of service accounts with a role, also of those of a release."""
    if token == _ACCOUNT:
        metadata = inputs.get("metadata") or {}
        found = [(metadata.get("namespace"), metadata)]
    elif token == HELM_RELEASE:
        found = [(inputs.get("namespace"), one) for one in _objects(inputs.get("values"))]
    else:
        return
    for namespace, one in found:
        annotations = one.get("annotations")
        if isinstance(annotations, Mapping) and isinstance(annotations.get(_ROLE), str) and one.get("name"):
            yield str(namespace or "default"), str(one["name"]), annotations


def _objects(values: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping in a chart's values."""
    if isinstance(values, Mapping):
        yield values
    for one in values.values() if isinstance(values, Mapping) else values if isinstance(values, list) else ():
        yield from _objects(one)
