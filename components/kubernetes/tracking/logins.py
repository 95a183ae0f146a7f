"""A user of the tracking server for every namespace that needs one, its login in a Secret there."""

import json
from collections.abc import Sequence
from typing import TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from agents.waiting import mlflow_logins
from agents.waiting.mlflow_logins import SECRET
from components.base import Component, Options
from components.kubernetes.access import account, bound_role, may
from components.kubernetes.network_policies import restricted
from components.kubernetes.programs.program import Program, digest
from components.kubernetes.queueing.tenancy import GIVEN, GIVEN_LABEL, TRACKING, TRACKING_LABEL
from components.kubernetes.tracking.pod import GrantsArgs
from components.kubernetes.waiting.job import WaitingProgram, waiting_job
from components.kubernetes.waiting.namespace import closed_namespace
from components.ordering import after

NAMESPACE = "trainstack-logins"
ACCOUNT = "logins"
# The server is ready when this begins; a paused database takes a quarter of a minute to resume.
LIMIT_S = 300
# Python with the library of the cloud.
_MEMORY_MIB = 256


class LoginArgs(TypedDict):
    """One user."""

    user: str
    namespace: str
    """Namespace of its login: readers of Secrets there are this user."""
    experiment: str
    """The one experiment that it is granted; others that it sees are its own."""
    permission: str
    """MLflow's permission: `EDIT` to record runs, `MANAGE` to delete some, too."""


class MlflowLoginsArgs(TypedDict):
    """Arguments of `MlflowLogins`."""

    url: pulumi.Input[str]
    """URL of the server for pods."""
    admin_secret: pulumi.Input[str]
    """Name of the first user's secret in the cloud's store."""
    secret_store: str
    """Text of `secret_store.py`, with which the program reads that secret (see `serve.CredentialStore`)."""
    grants: GrantsArgs
    """Access of the account `logins` in the namespace `trainstack-logins` to it."""
    image: pulumi.Input[str]
    """Image with what `secret_store` imports, by digest, that the platform's own nodes run."""
    logins: Sequence[LoginArgs]
    """The users."""


class MlflowLogins(Component):
    """A Job that creates the users, with the only account besides the server's that reads the first user.

    It may write Secrets in the namespaces of the logins and nowhere else. Another list of users is another
    Job; a working login stays as it is. Users of removed teams stay, too, with their runs.
    """

    secret: pulumi.Output[str]
    """Name of the Secret in each of the namespaces; dependents come after it exists. Its key `credentials`
    is the file that MLflow's clients read."""

    def __init__(self, name: str, args: MlflowLoginsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        wanted = json.dumps(list(args["logins"]), sort_keys=True)
        files = {f"{mlflow_logins.__package__}.secret_store": args["secret_store"]}  # imported from beside it
        program = Program(mlflow_logins.__name__, files=files)
        waits = WaitingProgram(
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
        self.register_declared()

    def _home(self, name: str) -> list[pulumi.Resource]:
        """The Job's namespace, from which the server is reachable, and which is not reachable."""
        labels = {**restricted(), TRACKING_LABEL: "allowed"}
        return closed_namespace(name, NAMESPACE, ACCOUNT, labels, self.child)

    def _where(self, name: str, args: MlflowLoginsArgs) -> None:
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
        """Permissions to read and replace the one Secret; creation cannot be limited to a name."""
        rules = [may("", "secrets", "get", "update", names=[SECRET]), may("", "secrets", "create")]
        return [
            bound_role(
                f"{name}-{login['namespace']}",
                ACCOUNT,
                rules,
                account(ACCOUNT, NAMESPACE),
                self.child,
                namespace=login["namespace"],
            )
            for login in logins
        ]
