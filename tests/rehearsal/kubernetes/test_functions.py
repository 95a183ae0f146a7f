"""Manifests are read as `pulumi_kubernetes.yaml` expects."""

import pytest

from rehearsal.core.model import RefusalError
from rehearsal.kubernetes.functions import call

DECODE = "kubernetes:yaml:decode"
TEXT = """
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: given}}
"""


def test_documents_and_lists_become_objects_in_their_namespace() -> None:
    found = call(DECODE, {"text": TEXT, "defaultNamespace": "team"})["result"]
    assert [(one["kind"], one["metadata"].get("namespace")) for one in found] == [
        ("Namespace", None),
        ("ConfigMap", "team"),
        ("ConfigMap", "given"),
    ]


@pytest.mark.parametrize("text", ["a: [", "just: a mapping"])
def test_an_invalid_manifest_is_refused(text: str) -> None:
    with pytest.raises(RefusalError, match=r"InvalidYaml|InvalidManifest"):
        call(DECODE, {"text": text})


def test_other_functions_are_named() -> None:
    with pytest.raises(RefusalError, match="kubernetes:helm:template"):
        call("kubernetes:helm:template", {})
