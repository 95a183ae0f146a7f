"""How a run learns the checkpoint policy of its namespace, and says when it last wrote one (pure; ADR 34)."""

from typing import Any

Body = dict[str, Any]

CONFIG = "trainstack-checkpoints"
"""The ConfigMap of a namespace whose keys are the variables below."""
URI = "TRAINSTACK_CHECKPOINT_URI"
"""Where the team's runs write in the object store."""
INTERVAL_S = "TRAINSTACK_CHECKPOINT_INTERVAL_S"
"""Seconds between two checkpoints."""
KEEP_LAST = "TRAINSTACK_CHECKPOINT_KEEP_LAST"
"""How many of the latest stay."""
KEEP_EVERY_HOURS = "TRAINSTACK_CHECKPOINT_KEEP_EVERY_HOURS"
"""Besides, the first one of every so many hours stays; absent: no others do."""

LAST = "trainstack.dev/last-checkpoint"
"""Annotation of a run's pod: when its last checkpoint was whole, in UTC, as RFC 3339 writes it."""
FOLDER = "/var/run/trainstack/pod"
"""In it what a pod needs to write its own annotation: `token`, `ca.crt`, `name`, `namespace`."""
_VOLUME = "trainstack-pod"
_TOKEN_S = 3600  # the least that the API server gives; the kubelet renews it


def variables_from() -> list[Body]:
    """Of a container: the variables of the policy, where the namespace has one."""
    return [{"configMapRef": {"name": CONFIG, "optional": True}}]


def volume() -> Body:
    """Of a pod: a token of its own, bound to it, and what it is called."""
    fields = ("name", "namespace")
    named = [{"path": each, "fieldRef": {"fieldPath": f"metadata.{each}"}} for each in fields]
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_S}},
        {"configMap": authority},
        {"downwardAPI": {"items": named}},
    ]
    # Training images run as whatever user they like: who runs in the pod may read it.
    return {"name": _VOLUME, "projected": {"defaultMode": 0o444, "sources": sources}}


def mount() -> Body:
    """Of the container that writes checkpoints."""
    return {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}
