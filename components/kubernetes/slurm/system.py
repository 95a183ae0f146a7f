"""One Slurm system in its namespace: keys, database, configuration, controller, nodes and login."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi_kubernetes import core, meta, networking, rbac

from components.base import Component, Options
from components.kubernetes.access import may
from components.kubernetes.charts import charts
from components.kubernetes.manifest import Manifest
from components.kubernetes.programs.program import Program, digest
from components.kubernetes.slurm.database import DatabaseArgs, database
from components.kubernetes.slurm.objects import (
    CHECKS,
    CONFIG,
    DIRECTORY,
    EPILOG,
    LOGIN,
    MEMBERS,
    NAMESPACE,
    PROLOG,
    SystemArgs,
    objects,
    sssd_conf,
)
from components.kubernetes.slurm.operator import CHART, RESTAPI_PORT
from components.kubernetes.volumes import SharedVolume, VolumeArgs
from components.kubernetes.waiting.job import WaitingProgram
from components.kubernetes.waiting.new_secret import secret_job
from components.ordering import after

KEYS: Final = Program("agents.waiting.slurm_secrets", ["agents.shared.new_secret"])
_ACCOUNT: Final = "slurm-keys"
_MEMBER: Final = "slurm-login"
_LIMIT_S: Final = 120
_PRIVILEGED: Final = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "warn")}


class SlurmSystemArgs(SystemArgs):
    """Arguments of `KubernetesSlurm`."""

    files: Mapping[str, str]
    """Files beside slurm.conf."""
    check: str
    """prolog.sh and epilog.sh."""
    health: str
    """health.sh."""
    database: DatabaseArgs
    """Disk of the accounting."""
    add_user: str
    """add-user.sh, in the login pod."""
    volumes: Mapping[str, VolumeArgs]
    """File systems by the name of their claim, as in `mounts`."""


class KubernetesSlurm(Component):
    """A Slurm system. Its namespace is closed to others, and takes privileged pods: slurmd makes cgroups.

    Keys and the password of the database are made by a Job, once: they are in Secrets alone. The operator's
    release and the pools' drivers come before.
    """

    login: pulumi.Output[str]
    """Name of the Deployment of the login pod, in `namespace`; dependents come after its object."""
    namespace: pulumi.Output[str]
    """Namespace of all pods."""

    def __init__(self, name: str, args: SlurmSystemArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self._prefix = name
        fence = self._namespace()
        inside = self.child(pulumi.ResourceOptions(depends_on=fence))
        keys = self._keys(args, inside)
        with_keys = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[keys]))
        stored = database(
            f"{name}-database", args["images"]["mariadb"], args["database"], with_keys, self.child
        )
        files = self._files(args, inside)
        claims = [
            SharedVolume(f"{name}-{claim}", {**volume, "namespace": NAMESPACE, "claim": claim}, inside)
            for claim, volume in args["volumes"].items()
        ]
        self._member_role(inside)
        made: list[pulumi.Resource] = [keys, *stored, *files, *claims]
        for body in objects(args):
            called = f"{name}-{body['kind'].lower()}-{body['metadata']['name']}"
            made.append(Manifest(called, body, self.child(pulumi.ResourceOptions(depends_on=[*made]))))
        self.login = after(pulumi.Output.from_input(LOGIN), made)
        self.namespace = pulumi.Output.from_input(NAMESPACE)
        self.register_declared()

    def _namespace(self) -> list[pulumi.Resource]:
        """The namespace; only its own pods and the operator connect to its pods."""
        space = core.v1.Namespace(
            f"{self._prefix}-namespace",
            metadata=meta.v1.ObjectMetaArgs(name=NAMESPACE, labels=_PRIVILEGED),
            opts=self.child(),
        )
        operator = {"match_labels": {"kubernetes.io/metadata.name": charts()[CHART].namespace}}
        # Any: mypy needs 10 GB and more for a literal against the SDK's nested types.
        rules: Any = {
            "pod_selector": {},
            "policy_types": ["Ingress"],
            "ingress": [
                {"from_": [{"pod_selector": {}}]},
                {
                    "from_": [{"namespace_selector": operator}],
                    "ports": [{"port": RESTAPI_PORT, "protocol": "TCP"}],
                },
            ],
        }
        policy = networking.v1.NetworkPolicy(
            f"{self._prefix}-policy",
            metadata=meta.v1.ObjectMetaArgs(name="slurm", namespace=NAMESPACE),
            spec=rules,
            opts=self.child(pulumi.ResourceOptions(depends_on=[space])),
        )
        return [space, policy]

    def _keys(self, args: SlurmSystemArgs, inside: pulumi.ResourceOptions) -> pulumi.Resource:
        """The Job that makes the Secrets."""
        waits = WaitingProgram(
            program=KEYS,
            arguments={"namespace": NAMESPACE, "seconds": str(_LIMIT_S)},
            name=f"{_ACCOUNT}-{digest(KEYS.digest)}",
            namespace=NAMESPACE,
            account=_ACCOUNT,
            image=args["images"]["python"],
            limit_s=_LIMIT_S,
        )
        return secret_job(f"{self._prefix}-keys", waits, self.child, inside)

    def _member_role(self, inside: pulumi.ResourceOptions) -> None:
        """The right of members to forward a port to the login pod; an administrator binds it.

        No role can name a pod of a Deployment, so it is for all pods of the namespace.
        """
        rbac.v1.Role(
            f"{self._prefix}-member-role",
            metadata=meta.v1.ObjectMetaArgs(name=_MEMBER, namespace=NAMESPACE),
            # kubectl reads the Service and its pods first.
            rules=[
                may("", "services", "get", names=[LOGIN]),
                may("", "pods", "get", "list"),
                may("", "pods/portforward", "create"),
            ],
            opts=inside,
        )

    def _files(self, args: SlurmSystemArgs, inside: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        contents: Mapping[str, Mapping[str, str]] = {
            CONFIG: args["files"],
            PROLOG: {"prolog.sh": args["check"]},
            EPILOG: {"epilog.sh": args["check"]},
            CHECKS: {"health.sh": args["health"]},
            MEMBERS: {"add-user.sh": args["add_user"]},
        }
        maps: list[pulumi.Resource] = [
            core.v1.ConfigMap(
                f"{self._prefix}-{called}",
                metadata=meta.v1.ObjectMetaArgs(name=called, namespace=NAMESPACE),
                data=dict(data),
                opts=inside,
            )
            for called, data in contents.items()
        ]
        directory = core.v1.Secret(
            f"{self._prefix}-directory",
            metadata=meta.v1.ObjectMetaArgs(name=DIRECTORY["name"], namespace=NAMESPACE),
            string_data={DIRECTORY["key"]: sssd_conf(args.get("directory"))},
            opts=inside,
        )
        return [*maps, directory]
