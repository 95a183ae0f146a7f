"""MariaDB of the accounting: one pod with a disk; its password is in a Secret that a Job generates."""

from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi_kubernetes import apps, core, meta

from components.base import Child
from components.kubernetes.slurm.objects import DATABASE, DATABASE_SECRET, DATABASE_USER, NAMESPACE

_PORT: Final = 3306
_LABELS: Final[Mapping[str, str]] = {"app.kubernetes.io/name": DATABASE}
# slurm.schedmd.com/accounting.html, "MySQL Configuration": a purge of old jobs holds locks for long.
_ARGUMENTS: Final = ("--innodb-buffer-pool-size=1G", "--innodb-lock-wait-timeout=900", "--skip-name-resolve")
_SECRETS: Final = "/run/secrets/slurm"
_USER: Final = 999
"""User `mysql` of the official image."""


def database(
    name: str, image: str, size_gib: int, inside: pulumi.ResourceOptions, child: Child
) -> list[pulumi.Resource]:
    """Service and StatefulSet. The data outlives the pod, and is deleted with the claim.

    `inside`: options for objects in the namespace, which come after it and after the Secret.
    """
    service = core.v1.Service(
        f"{name}-service",
        metadata=meta.v1.ObjectMetaArgs(
            name=DATABASE,
            namespace=NAMESPACE,
            # Headless, before its pod exists.
            annotations={"pulumi.com/skipAwait": "true"},
        ),
        spec={"cluster_ip": "None", "selector": dict(_LABELS), "ports": [{"name": "mysql", "port": _PORT}]},
        opts=inside,
    )
    made = apps.v1.StatefulSet(
        f"{name}-server",
        metadata=meta.v1.ObjectMetaArgs(name=DATABASE, namespace=NAMESPACE),
        spec=_spec(image, size_gib),
        opts=pulumi.ResourceOptions.merge(inside, child(pulumi.ResourceOptions(depends_on=[service]))),
    )
    return [service, made]


def _spec(image: str, size_gib: int) -> Any:
    return {
        "replicas": 1,
        "service_name": DATABASE,
        "selector": {"match_labels": dict(_LABELS)},
        "persistent_volume_claim_retention_policy": {"when_deleted": "Delete", "when_scaled": "Retain"},
        "template": {"metadata": {"labels": dict(_LABELS)}, "spec": _pod(image)},
        "volume_claim_templates": [
            {
                "metadata": {"name": "data"},
                "spec": {
                    "access_modes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": f"{size_gib}Gi"}},
                },
            }
        ],
    }


def _pod(image: str) -> dict[str, Any]:
    return {
        "automount_service_account_token": False,
        "security_context": {
            "run_as_non_root": True,
            "run_as_user": _USER,
            "run_as_group": _USER,
            "fs_group": _USER,
            "seccomp_profile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "mariadb",
                "image": image,
                "args": list(_ARGUMENTS),
                "env": [
                    {"name": "MARIADB_DATABASE", "value": "slurm_acct_db"},
                    {"name": "MARIADB_USER", "value": DATABASE_USER},
                    # As files: programs of a pod inherit its environment.
                    {"name": "MARIADB_PASSWORD_FILE", "value": f"{_SECRETS}/password"},
                    {"name": "MARIADB_ROOT_PASSWORD_FILE", "value": f"{_SECRETS}/root-password"},
                ],
                "ports": [{"name": "mysql", "container_port": _PORT}],
                "readiness_probe": {"tcp_socket": {"port": _PORT}, "period_seconds": 10},
                "resources": {
                    "requests": {"cpu": "250m", "memory": "1536Mi"},
                    "limits": {"memory": "2Gi"},
                },
                "security_context": {
                    "allow_privilege_escalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volume_mounts": [
                    {"name": "data", "mount_path": "/var/lib/mysql"},
                    {"name": "passwords", "mount_path": _SECRETS, "read_only": True},
                ],
            }
        ],
        "volumes": [{"name": "passwords", "secret": {"secret_name": DATABASE_SECRET, "default_mode": 0o440}}],
    }
