"""The MLflow tracking server in the cluster: a Deployment behind a Service, in a namespace of its own."""

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apps.v1 import DeploymentSpecArgsDict

from agents.mlflow_server import serve
from components.base import Component, Options
from components.kubernetes.network_policies import closed, restricted
from components.kubernetes.programs.program import config_map
from components.kubernetes.tracking.pod import (
    NAME,
    PORT,
    DoorArgs,
    MlflowServerArgs,
    labels,
    network_policy,
    pod,
    program,
    service_host,
)
from components.kubernetes.tracking.schema import MlflowSchema
from components.ordering import after

# Seconds for which a pod must be ready: a load balancer needs two checks, five seconds apart.
FOUND_S = 15


class MlflowServer(Component):
    """The tracking server, hardened: unprivileged, read-only root, no Kubernetes token, closed by default.

    Cloud permissions belong to the service account `mlflow`. Only pods in namespaces labelled
    `trainstack.dev/tracking=allowed` reach it, and a load balancer where there is one; and only with a user,
    who has the permissions granted in MLflow.
    """

    url: pulumi.Output[str]
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: MlflowServerArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        space = self._namespace(name, args.get("namespace", NAME))
        # The name of the created namespace, so that everything inside waits for it.
        inside = space.metadata.name
        account = k8s.core.v1.ServiceAccount(
            f"{name}-account",
            metadata={"name": NAME, "namespace": inside},
            automount_service_account_token=False,
            opts=self.child(),
        )
        closed(f"{name}-closed", inside, "closed", self.child(), out=False)
        # Named after its content: a new program makes new pods, and old ones keep theirs until they end.
        served = program(serve.__name__, args["secret_store"])
        config = f"{NAME}-serve-{served.digest}"
        files = config_map(name, served, config, inside, self.child())
        tables = MlflowSchema(f"{name}-schema", args, inside, self.child())
        policy = k8s.networking.v1.NetworkPolicy(
            f"{name}-policy",
            metadata={"name": NAME, "namespace": inside},
            spec=network_policy(args["grants"]["agents"], args.get("door")),
            opts=self.child(),
        )
        # With `min_available` and one replica, no node under it could ever be drained.
        k8s.policy.v1.PodDisruptionBudget(
            f"{name}-disruptions",
            metadata={"name": NAME, "namespace": inside},
            spec={"max_unavailable": 1, "selector": {"match_labels": labels()}},
            opts=self.child(),
        )
        deployment = k8s.apps.v1.Deployment(
            f"{name}-deployment",
            metadata={"name": NAME, "namespace": inside, "labels": labels()},
            spec=_rollout(args, account.metadata.name, config),
            # The policy exists before the pod. The CNI decides what a pod reaches before it enforces the
            # policy: some leave a new pod open for this moment.
            opts=self.child(pulumi.ResourceOptions(depends_on=[policy, files, tables.job])),
        )
        service = self._service(name, inside, deployment)
        if "door" in args:
            self._door(name, inside, args["door"], deployment)
        host = service_host(args.get("namespace", NAME))
        self.url = after(pulumi.Output.from_input(f"http://{host}:{PORT}"), [deployment, service])
        self.namespace = inside
        self.register_declared()

    def _namespace(self, name: str, namespace: str) -> k8s.core.v1.Namespace:
        return k8s.core.v1.Namespace(
            f"{name}-namespace", metadata={"name": namespace, "labels": restricted()}, opts=self.child()
        )

    def _service(
        self, name: str, namespace: pulumi.Input[str], deployment: k8s.apps.v1.Deployment
    ) -> k8s.core.v1.Service:
        """After the pods: the provider gives a Service 10 minutes to find ready ones.

        Source: pulumi-kubernetes provider/pkg/await/service.go (DefaultServiceTimeoutMins), of 2026-07-01.
        """
        return k8s.core.v1.Service(
            f"{name}-service",
            metadata={"name": NAME, "namespace": namespace, "labels": labels()},
            spec={
                "type": "ClusterIP",
                "selector": labels(),
                "ports": [{"name": "http", "port": PORT, "target_port": "http"}],
            },
            opts=self.child(pulumi.ResourceOptions(depends_on=[deployment])),
        )

    def _door(
        self, name: str, namespace: pulumi.Input[str], door: DoorArgs, deployment: k8s.apps.v1.Deployment
    ) -> None:
        """A port on the nodes that run the server, for a load balancer.

        `Local`: packets keep the load balancer's address, which the network policy allows. Forwarded by
        another node, they would have that node's, which is in the range of all pods. Nodes without the server
        drop them, so the load balancer detects where it runs.
        """
        k8s.core.v1.Service(
            f"{name}-door",
            metadata={"name": f"{NAME}-door", "namespace": namespace, "labels": labels()},
            spec={
                "type": "NodePort",
                "external_traffic_policy": "Local",
                "selector": labels(),
                "ports": [
                    {"name": "http", "port": PORT, "target_port": "http", "node_port": door["node_port"]}
                ],
            },
            opts=self.child(pulumi.ResourceOptions(depends_on=[deployment])),
        )


def _rollout(args: MlflowServerArgs, account: pulumi.Input[str], config: str) -> DeploymentSpecArgsDict:
    """A new pod must be ready before an old one ends; the Job before ended them if it changed the tables."""
    spec: DeploymentSpecArgsDict = {
        "replicas": args["replicas"],
        "selector": {"match_labels": labels()},
        "strategy": {"type": "RollingUpdate", "rolling_update": {"max_surge": 1, "max_unavailable": 0}},
        "template": {"metadata": {"labels": labels()}, "spec": pod(args, account, config)},
    }
    if "door" in args:
        # The load balancer must detect the node of a new pod before that of the old one has none.
        spec["min_ready_seconds"] = FOUND_S
    return spec
