"""The Job that upgrades the tracking server's tables before its servers are replaced."""

import pulumi

from agents.mlflow_server import schema_job
from components.base import Component, Options
from components.kubernetes.access import account, bound_role, may
from components.kubernetes.network_policies import restricted
from components.kubernetes.programs.program import digest
from components.kubernetes.tracking.pod import NAME, MlflowServerArgs, database, program
from components.kubernetes.waiting.job import WaitingProgram, waiting_job
from components.kubernetes.waiting.namespace import closed_namespace

NAMESPACE = "trainstack-schema"
ACCOUNT = "schema"
# An upgrade of large tables, after a snapshot of them.
LIMIT_S = 3600
# A look at the image: one that cannot be pulled must not wait as long as an upgrade may.
LOOK_S = 60
# Old servers end within the grace period of their pods, 30 s.
_STOP_S = 180
# MLflow and SQLAlchemy.
_MEMORY_MIB = 1024


class MlflowSchema(Component):
    """A Job with the image of the next servers: dependents come after tables with its revision (ADR 45).

    Another one before it only starts a pod with the image.
    Only its account may read and fill the secret of MLflow's administrator, scale the Deployment of the
    servers and take snapshots; its namespace has no other pods, and members have no access to it.
    """

    job: pulumi.Resource

    def __init__(
        self, name: str, args: MlflowServerArgs, namespace: pulumi.Input[str], opts: Options = None
    ) -> None:
        super().__init__(name, opts)
        runs = program(schema_job.__name__, args["secret_store"])
        called = pulumi.Output.from_input(args["image"]).apply(lambda image: digest(image, runs.digest))

        def waits(stage: str, limit_s: int) -> WaitingProgram:
            return WaitingProgram(
                program=runs,
                arguments={
                    "stage": stage,
                    "namespace": namespace,
                    "deployment": NAME,
                    "replicas": pulumi.Output.from_input(args["replicas"]).apply(str),
                    "administrator": args["admin_secret"],
                    "database": args.get("snapshots_of", ""),
                    "seconds": str(_STOP_S),
                },
                name=pulumi.Output.concat(f"{stage}-", called),
                namespace=NAMESPACE,
                account=ACCOUNT,
                image=args["image"],
                limit_s=limit_s,
                environment=database(args),
                memory_mib=_MEMORY_MIB,
                scratch=True,
            )

        rules = [
            may("apps", "deployments", "get", names=[NAME]),
            may("apps", "deployments/scale", "patch", names=[NAME]),
            may("", "pods", "list"),
        ]
        needs = [
            *closed_namespace(name, NAMESPACE, ACCOUNT, restricted(), self.child),
            bound_role(name, ACCOUNT, rules, account(ACCOUNT, NAMESPACE), self.child, namespace=namespace),
        ]
        look = waiting_job(f"{name}-image", waits("image", LOOK_S), needs, self.child)
        self.job = waiting_job(f"{name}-job", waits("tables", LIMIT_S), [*needs, look], self.child)
        self.register_outputs({})
