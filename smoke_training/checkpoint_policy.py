"""Pass a namespace's checkpoint policy to runs, and let them announce checkpoints (pure; ADR 34)."""

from typing import Any

Body = dict[str, Any]

CONFIG = "trainstack-checkpoints"
"""The ConfigMap of a namespace whose keys are the variables below."""
URI = "TRAINSTACK_CHECKPOINT_URI"
"""Folder of the team's runs in the object store."""
INTERVAL_S = "TRAINSTACK_CHECKPOINT_INTERVAL_S"
"""Seconds between two checkpoints."""
KEEP_LAST = "TRAINSTACK_CHECKPOINT_KEEP_LAST"
"""Number of latest checkpoints to keep."""
KEEP_EVERY_HOURS = "TRAINSTACK_CHECKPOINT_KEEP_EVERY_HOURS"
"""Besides, keep the first one of every period, in hours; absent: no others."""

LAST = "trainstack.dev/last-checkpoint"
"""Annotation of a run's pod: completion time of its last checkpoint, UTC (RFC 3339)."""
FOLDER = "/var/run/trainstack/pod"
"""Files with which a pod writes its own annotation: `token`, `ca.crt`, `name`, `namespace`."""
_VOLUME = "trainstack-pod"
_TOKEN_S = 3600  # the API server's minimum; the kubelet renews it


def variables_from() -> list[Body]:
    """Return a container's variables of the policy, if the namespace has one."""
    return [{"configMapRef": {"name": CONFIG, "optional": True}}]


def volume() -> Body:
    """Return a pod's volume with a token bound to it, and its name."""
    fields = ("name", "namespace")
    named = [{"path": each, "fieldRef": {"fieldPath": f"metadata.{each}"}} for each in fields]
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_S}},
        {"configMap": authority},
        {"downwardAPI": {"items": named}},
    ]
    # Training images run as any user, so every user in the pod may read it.
    return {"name": _VOLUME, "projected": {"defaultMode": 0o444, "sources": sources}}


def mount() -> Body:
    """Return the mount of the container that writes checkpoints."""
    return {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}
