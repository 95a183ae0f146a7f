"""MariaDB of the accounting: one pod with a disk; its password is in a Secret that a Job generates.

The disk is a claim of its own: a StatefulSet is replaced when its claim templates change, by which a larger
disk would be a new, empty one (pulumi/pulumi-kubernetes#4328); a claim grows in place (#1705).
"""

from collections.abc import Mapping
from typing import Any, Final, TypedDict

import pulumi
from pulumi_kubernetes import apps, core, meta

from components.base import Child
from components.kubernetes.slurm.objects import DATABASE, DATABASE_SECRET, DATABASE_USER, NAMESPACE

_PORT: Final = 3306
_CLAIM: Final = f"{DATABASE}-data"
_LABELS: Final[Mapping[str, str]] = {"app.kubernetes.io/name": DATABASE}
# slurm.schedmd.com/accounting.html, "MySQL Configuration": a purge of old jobs holds locks for long.
_ARGUMENTS: Final = ("--innodb-buffer-pool-size=1G", "--innodb-lock-wait-timeout=900", "--skip-name-resolve")
_SECRETS: Final = "/run/secrets/slurm"
_USER: Final = 999
"""User `mysql` of the official image."""


class DatabaseArgs(TypedDict):
    """The disk of the accounting."""

    size_gib: int
    """Size in GiB; it can grow, and not shrink."""
    storage_class: pulumi.Input[str]
    """Class of the disk, which must allow expansion."""
    protect: bool
    """Refuse to delete the disk (a claim has no such switch, so Pulumi refuses)."""


def database(
    name: str, image: str, args: DatabaseArgs, inside: pulumi.ResourceOptions, child: Child
) -> list[pulumi.Resource]:
    """Claim, Service and StatefulSet. The data outlives the pods, and is deleted with the claim.

    `inside`: options for objects in the namespace, which come after it and after the Secret.
    """
    claim = core.v1.PersistentVolumeClaim(
        f"{name}-claim",
        metadata=meta.v1.ObjectMetaArgs(name=_CLAIM, namespace=NAMESPACE),
        spec=core.v1.PersistentVolumeClaimSpecArgs(
            access_modes=["ReadWriteOnce"],
            resources=core.v1.VolumeResourceRequirementsArgs(requests={"storage": f"{args['size_gib']}Gi"}),
            storage_class_name=args["storage_class"],
        ),
        opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(protect=args["protect"])),
    )
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
        spec=_spec(image),
        opts=pulumi.ResourceOptions.merge(inside, child(pulumi.ResourceOptions(depends_on=[claim, service]))),
    )
    return [claim, service, made]


def _spec(image: str) -> Any:
    return {
        "replicas": 1,
        "service_name": DATABASE,
        "selector": {"match_labels": dict(_LABELS)},
        "template": {"metadata": {"labels": dict(_LABELS)}, "spec": _pod(image)},
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
        "volumes": [
            {"name": "data", "persistent_volume_claim": {"claim_name": _CLAIM}},
            {"name": "passwords", "secret": {"secret_name": DATABASE_SECRET, "default_mode": 0o440}},
        ],
    }
