"""A user of the tracking server for every namespace that needs one, its login in a Secret there."""

import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi
from pulumi_kubernetes import core, meta, rbac

from agents.waiting import mlflow_logins
from agents.waiting.mlflow_logins import SECRET
from components.base import Component
from components.kubernetes.fence import restricted
from components.kubernetes.programs.program import Program, digest
from components.kubernetes.queueing.tenancy import GIVEN, GIVEN_LABEL, TRACKING_LABEL
from components.kubernetes.tracking.pod import GrantsArgs
from components.kubernetes.waiting.home import closed_home
from components.kubernetes.waiting.job import Waiting, waiting_job
from components.ordering import after

NAMESPACE = "trainstack-logins"
ACCOUNT = "logins"
# ConfigMap in each of the namespaces.
TRACKING = "mlflow"
# The server answers when this begins; a database that pauses takes a quarter of a minute to wake up.
LIMIT_S = 300
# Python with the library of the cloud.
_MEMORY_MIB = 256
_RBAC = "rbac.authorization.k8s.io"


class LoginArgs(TypedDict):
    """One user."""

    user: str
    namespace: str
    """Where its login lies: whoever reads Secrets there is this user."""
    experiment: str
    """The one experiment that it is given; it sees no other but those that it makes itself."""
    permission: str
    """What it may do there, in MLflow's words: `EDIT` to record runs, `MANAGE` to delete some, too."""


class MlflowLoginsArgs(TypedDict):
    """Arguments of `MlflowLogins`."""

    url: pulumi.Input[str]
    """Where the server listens, as pods see it."""
    admin_secret: pulumi.Input[str]
    """Secret of the first user, as the cloud's store of secrets calls it."""
    secret_store: str
    """Text of `secret_store.py`, by which the program reads that secret (see `serve.SecretStore`)."""
    grants: GrantsArgs
    """How the right to read it reaches the account `logins` in the namespace `trainstack-logins`."""
    image: pulumi.Input[str]
    """Image with what `secret_store` imports, by digest, that the platform's own nodes run."""
    logins: Sequence[LoginArgs]
    """The users."""


class MlflowLogins(Component):
    """A Job that makes the users, with the only account besides the server's that reads the first user.

    It may write Secrets in the namespaces of the logins and nowhere else. Another list of users is another
    Job; a login that works stays as it is. Users of teams that are gone stay, too, with their runs.
    """

    secret: pulumi.Output[str]
    """Name of the Secret in each of the namespaces; what uses it comes after it is there. Its key
    `credentials` is the file that MLflow's clients read."""

    def __init__(self, name: str, args: MlflowLoginsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        wanted = json.dumps(list(args["logins"]), sort_keys=True)
        files = {f"{mlflow_logins.__package__}.secret_store": args["secret_store"]}  # imported from beside it
        program = Program(mlflow_logins.__name__, files=files)
        waits = Waiting(
            program=program,
            arguments={
                "url": args["url"],
                "admin": args["admin_secret"],
                "logins": wanted,
                "labels": json.dumps({GIVEN_LABEL: GIVEN}),
                "seconds": str(LIMIT_S),
            },
            name=f"{ACCOUNT}-{digest(wanted, program.digest)}",
            namespace=NAMESPACE,
            account=ACCOUNT,
            image=args["image"],
            limit_s=LIMIT_S,
            environment=args["grants"]["environment"],
            memory_mib=_MEMORY_MIB,
        )
        needs = [*self._home(name), *self._rights(name, args["logins"])]
        job = waiting_job(f"{name}-job", waits, needs, self.child)
        self._where(name, args)
        self.secret = after(pulumi.Output.from_input(SECRET), [job])
        self.register_outputs({"secret": self.secret})

    def _home(self, name: str) -> list[pulumi.Resource]:
        """The Job's namespace, from which the server is reached, and which nobody reaches."""
        labels = {**restricted(), TRACKING_LABEL: "allowed"}
        return closed_home(name, NAMESPACE, ACCOUNT, labels, self.child)

    def _where(self, name: str, args: MlflowLoginsArgs) -> None:
        """What is no secret, for pods to take their variables from."""
        for login in args["logins"]:
            core.v1.ConfigMap(
                f"{name}-{login['namespace']}-tracking",
                metadata=meta.v1.ObjectMetaArgs(
                    name=TRACKING, namespace=login["namespace"], labels={GIVEN_LABEL: GIVEN}
                ),
                data={"MLFLOW_TRACKING_URI": args["url"], "MLFLOW_EXPERIMENT_NAME": login["experiment"]},
                opts=self.child(),
            )

    def _rights(self, name: str, logins: Sequence[LoginArgs]) -> list[pulumi.Resource]:
        """Read and replace the one Secret; a new one can be limited to no name."""
        bindings: list[pulumi.Resource] = []
        for namespace in (login["namespace"] for login in logins):
            metadata = meta.v1.ObjectMetaArgs(name=ACCOUNT, namespace=namespace)
            role = rbac.v1.Role(
                f"{name}-{namespace}-role",
                metadata=metadata,
                rules=[
                    rbac.v1.PolicyRuleArgs(
                        api_groups=[""],
                        resources=["secrets"],
                        resource_names=[SECRET],
                        verbs=["get", "update"],
                    ),
                    rbac.v1.PolicyRuleArgs(api_groups=[""], resources=["secrets"], verbs=["create"]),
                ],
                opts=self.child(),
            )
            bindings.append(
                rbac.v1.RoleBinding(
                    f"{name}-{namespace}-binding",
                    metadata=metadata,
                    role_ref=rbac.v1.RoleRefArgs(api_group=_RBAC, kind="Role", name=ACCOUNT),
                    subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=ACCOUNT, namespace=NAMESPACE)],
                    opts=self.child(pulumi.ResourceOptions(depends_on=[role])),
                )
            )
        return bindings
