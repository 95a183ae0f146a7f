"""Retries of creates by the real provider: none for an unreachable webhook."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.provider.real import needs_provider, stacks
from tests.rehearsal.runs.updates import refused

KIND = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")


@pytest.fixture
def unanswered(api: KubernetesApi, namespace: str) -> Iterator[None]:
    """A webhook for ConfigMaps of one namespace, at a port without a listener."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "closed.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }  # fmt: skip
    body: Object = {"apiVersion": KIND[0], "kind": KIND[1], "metadata": {"name": namespace}}
    api.create({**body, "webhooks": [webhook]})
    yield
    api.delete(*KIND, namespace)


@needs_provider
def test_an_unreachable_webhook_fails_a_create_at_once(
    plane: ControlPlane, namespace: str, tmp_path: Path, unanswered: None
) -> None:
    metadata: Any = {"name": "c", "namespace": namespace}
    kubeconfig = plane.kubeconfig.read_text()

    def program() -> None:
        opts = pulumi.ResourceOptions(provider=k8s.Provider("cluster", kubeconfig=kubeconfig))
        k8s.core.v1.ConfigMap("c", metadata=metadata, opts=opts)

    stack, began = stacks(tmp_path / "state")(program), time.monotonic()
    said = refused(stack)
    assert "was not successfully created by the Kubernetes API server: Internal error occurred" in said
    assert 'failed calling webhook "closed.example.com"' in said
    assert "connection refused" in said
    # With what is tried again it would take 63 s more.
    assert time.monotonic() - began < 60
    stack.destroy(on_output=lambda _: None)
