"""Objects of slurm-operator's kinds for one Slurm system (pure).

Names of what the operator makes follow from these: the Controller `slurm` becomes the StatefulSet
`slurm-controller` and the ConfigMap `slurm-config`, the LoginSet `login` a Deployment `login`
(SlinkyProject/slurm-operator v1.1.0 api/v1beta1/*_keys.go).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict

from components.kubernetes.accelerators import POOL_LABEL, TOLERATIONS
from components.kubernetes.offers import NodeOffer, devices
from components.kubernetes.queueing.quotas import GPU

API: Final = "slinky.slurm.net/v1beta1"
NAMESPACE, NAME, LOGIN = "slurm", "slurm", "login"
CONFIG, PROLOG, EPILOG, CHECKS = "slurm-files", "slurm-prolog", "slurm-epilog", "slurm-checks"
MEMBERS, MEMBERS_FOLDER = "slurm-members", "/opt/trainstack/members"
"""Names of ConfigMaps; the last is a folder of the login pod."""
SLURM_KEY: Final = {"name": "slurm-key", "key": "slurm.key"}
JWT_KEY: Final = {"name": "slurm-jwt", "key": "jwt.key"}
DATABASE_SECRET, DATABASE, DATABASE_USER = "slurm-database", "slurm-database", "slurm"
DIRECTORY: Final = {"name": "slurm-directory", "key": "sssd.conf"}
_REFERENCE: Final = {"name": NAME, "namespace": NAMESPACE}
_SMALL: Final = {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}
_DRAIN_S: Final = 60
_SSHD: Final = """PermitRootLogin no
PasswordAuthentication no
KbdInteractiveAuthentication no
AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys
AuthorizedKeysCommandUser nobody"""
"""Root comes by kubectl alone, members by the keys of their directory, from sssd: the operator replaces the
image's sshd_config (v1.1.0 loginbuilder/login_config.go), and its own rows name no source of keys."""


class ImagesArgs(TypedDict):
    """Images by digest."""

    slurmctld: str
    slurmdbd: str
    slurmrestd: str
    slurmd: str
    login: str
    mariadb: str
    shell: str
    """With `sh`, of helpers."""
    python: str
    """With Python, of the Job that generates keys."""


class PartitionArgs(TypedDict):
    """A pool as a partition."""

    name: str
    """Name of the pool, the NodeSet and the partition."""
    nodes: int
    """Pods, one for each node of the pool."""
    offer: NodeOffer
    """Resources of a node, which one pod takes."""
    node_conf: str
    """Settings of its nodes."""
    partition_conf: str
    """Settings of the partition."""


class MountArgs(TypedDict):
    """A claim in the folder of login pod and nodes."""

    claim: str
    folder: str


class SystemArgs(TypedDict):
    """A Slurm system."""

    cluster: str
    """`ClusterName`."""
    images: ImagesArgs
    extra_conf: str
    """End of slurm.conf."""
    scripts: str
    """Folder of health.sh on every node, as slurm.conf names it."""
    partitions: Sequence[PartitionArgs]
    mounts: Sequence[MountArgs]
    directory: NotRequired[Mapping[str, str]]
    """`uri` and `base` of the LDAP directory of members. Default: none."""


def objects(args: SystemArgs) -> list[dict[str, Any]]:
    """All objects: accounting first, then the controller, and what belongs to it."""
    rest = [_restapi(args), *(_nodeset(args, one) for one in args["partitions"]), _loginset(args)]
    return [_accounting(args), _controller(args), *rest]


def sssd_conf(directory: Mapping[str, str] | None) -> str:
    """sssd.conf: without a directory, the users of the image. It has no password."""
    lines = [
        "[sssd]",
        "config_file_version = 2",
        "services = nss, pam, ssh",
        "domains = DEFAULT",
        "",
        "[nss]",
    ]
    lines += [
        "filter_groups = root,slurm",
        "filter_users = root,slurm",
        "",
        "[pam]",
        "",
        "[ssh]",
        "",
        "[domain/DEFAULT]",
    ]
    if directory is None:
        return "\n".join(
            [*lines, "id_provider = proxy", "proxy_lib_name = files", "auth_provider = none", ""]
        )
    provider = ["id_provider = ldap", "auth_provider = ldap", "ldap_tls_reqcert = demand"]
    provider += [f"ldap_uri = {directory['uri']}", f"ldap_search_base = {directory['base']}"]
    return "\n".join([*lines, *provider, ""])


def _body(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": dict(spec),
    }


def _daemon(cpu: str, memory: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}


def _accounting(args: SystemArgs) -> dict[str, Any]:
    spec = {
        "slurmKeyRef": SLURM_KEY,
        "jwtKeyRef": JWT_KEY,
        "slurmdbd": {"image": args["images"]["slurmdbd"], "resources": _daemon("250m", "512Mi")},
        "storageConfig": {
            "host": DATABASE,
            "port": 3306,
            "database": "slurm_acct_db",
            "username": DATABASE_USER,
            "passwordKeyRef": {"name": DATABASE_SECRET, "key": "password"},
        },
    }
    return _body("Accounting", NAME, spec)


def _controller(args: SystemArgs) -> dict[str, Any]:
    images = args["images"]
    spec = {
        "clusterName": args["cluster"],
        "slurmKeyRef": SLURM_KEY,
        "jwtKeyRef": JWT_KEY,
        "accountingRef": _REFERENCE,
        "slurmctld": {"image": images["slurmctld"], "resources": _daemon("500m", "2Gi")},
        "reconfigure": {"image": images["slurmctld"], "resources": _SMALL},
        "logfile": {"image": images["shell"], "resources": _SMALL},
        "extraConf": args["extra_conf"],
        "configFileRefs": [{"name": CONFIG}],
        "prologScriptRefs": [{"name": PROLOG}],
        "epilogScriptRefs": [{"name": EPILOG}],
        # Queue and jobs survive a new pod, on a disk of the default class, which is encrypted.
        "persistence": {
            "enabled": True,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    return _body("Controller", NAME, spec)


def _restapi(args: SystemArgs) -> dict[str, Any]:
    """Without it the operator knows no node's state, and deletes pods whose jobs run."""
    rest = {"image": args["images"]["slurmrestd"], "resources": _daemon("100m", "256Mi")}
    return _body("RestApi", NAME, {"controllerRef": _REFERENCE, "replicas": 1, "slurmrestd": rest})


def _mounts(args: SystemArgs) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    mounts = [{"name": one["claim"], "mountPath": one["folder"]} for one in args["mounts"]]
    volumes = [
        {"name": one["claim"], "persistentVolumeClaim": {"claimName": one["claim"]}} for one in args["mounts"]
    ]
    return mounts, volumes


def _nodeset(args: SystemArgs, one: PartitionArgs) -> dict[str, Any]:
    mounts, volumes = _mounts(args)
    offer = one["offer"]
    whole = {"cpu": str(offer["cpu"]), "memory": f"{offer['memory_gib']}Gi"}
    gpus = {GPU: str(offer["gpus"])} if offer["gpus"] else {}
    taken = {**whole, **gpus, **devices(offer.get("fabric"))}
    mounts += [{"name": "checks", "mountPath": args["scripts"]}, {"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    volumes += [
        {"name": "checks", "configMap": {"name": CHECKS, "defaultMode": 0o755}},
        # Half of the memory, as in runs of this product: NCCL and data loaders need more than 64 MiB.
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{offer['memory_gib'] // 2}Gi"}},
    ]
    spec = {
        "controllerRef": _REFERENCE,
        "scalingMode": "StatefulSet",
        "replicas": one["nodes"],
        "slurmd": {
            "image": args["images"]["slurmd"],
            "resources": {"requests": taken, "limits": taken},
            "volumeMounts": mounts,
        },
        "logfile": {"image": args["images"]["shell"], "resources": _SMALL},
        "extraConf": one["node_conf"],
        "partition": {"enabled": True, "config": one["partition_conf"]},
        # A new pod waits until the jobs of its node have ended: the operator drains it first.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
        "workloadDisruptionProtection": True,
        "template": {
            "spec": {
                # Names of nodes: `<pool>-0` and so on.
                "hostname": f"{one['name']}-",
                "nodeSelector": {POOL_LABEL: one["name"]},
                "tolerations": [*TOLERATIONS, {"key": POOL_LABEL, "operator": "Exists"}],
                "terminationGracePeriodSeconds": _DRAIN_S,
                "volumes": volumes,
            }
        },
    }
    return _body("NodeSet", one["name"], spec)


def _loginset(args: SystemArgs) -> dict[str, Any]:
    mounts, volumes = _mounts(args)
    mounts.append({"name": "members", "mountPath": MEMBERS_FOLDER})
    volumes.append({"name": "members", "configMap": {"name": MEMBERS, "defaultMode": 0o755}})
    spec = {
        "controllerRef": _REFERENCE,
        "replicas": 1,
        "login": {
            "image": args["images"]["login"],
            "resources": {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "8Gi"}},
            "volumeMounts": mounts,
        },
        "initconf": {"image": args["images"]["shell"], "resources": _SMALL},
        "sssdConfRef": DIRECTORY,
        "extraSshdConfig": _SSHD,
        # The chart's default is a load balancer, which on a cloud may be public.
        "service": {"spec": {"type": "ClusterIP"}},
        "template": {"spec": {"volumes": volumes}},
    }
    return _body("LoginSet", LOGIN, spec)
