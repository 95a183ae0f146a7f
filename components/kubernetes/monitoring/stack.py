"""Monitoring in the cluster: chart kube-prometheus-stack with scrapes, dashboards, rules and receivers."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import core, meta

from components.base import Component, Options
from components.kubernetes.charts import release
from components.kubernetes.definitions.install import definitions
from components.kubernetes.manifest import Manifest
from components.kubernetes.monitoring import rules, scrapes
from components.kubernetes.monitoring.chart_values import values
from components.kubernetes.monitoring.dashboards import dashboards, grafana_json
from components.kubernetes.monitoring.names import LOGIN, NAMESPACE, PROMETHEUS_URL
from components.kubernetes.monitoring.namespace import home
from components.kubernetes.monitoring.receivers import ReceiverArgs
from components.kubernetes.monitoring.routes import RouteArgs, config
from components.kubernetes.programs.deployment import PORT, ProgramDeployment, program_deployment
from components.kubernetes.programs.program import Program, digest
from components.kubernetes.tracking.pod import AgentArgs
from components.kubernetes.waiting.job import WaitingProgram
from components.kubernetes.waiting.new_secret import secret_job
from components.ordering import after
from components.runbooks import ROOT

CHART = "kube-prometheus-stack"
ALERT_LOG = "alert-log"
ALERT_LOG_URL = f"http://{ALERT_LOG}.{NAMESPACE}.svc.cluster.local:{PORT}"
"""URL that writes alerts to a log, to be followed by the name of the receiver."""
LOGIN_PROGRAM = Program("agents.waiting.grafana_login", ["agents.shared.new_secret"])
ALERT_LOG_PROGRAM = Program("agents.monitoring.alert_log", imports=["agents.shared.health"])
_LOGIN_LIMIT_S = 120
_DASHBOARD_LABEL = "grafana_dashboard"  # the sidecar of Grafana's chart looks for it


class MonitoringArgs(TypedDict):
    """Arguments of `Monitoring`."""

    retention_days: int
    """Days for which metrics are kept."""
    storage_gib: int
    """The disk of Prometheus."""
    memory_gib: int
    """Memory limit of Prometheus."""
    platform: Mapping[str, pulumi.Input[Any]]
    """Receiver of the platform's administrators: one of Alertmanager without its name."""
    teams: Sequence[RouteArgs]
    """Teams that are notified of their own alerts."""
    agents: Sequence[AgentArgs]
    """Agents that issue cloud credentials to pods."""
    gpu_exporter: NotRequired[scrapes.GpuExporterArgs]
    """The exporter of GPU metrics. Default: there are no GPUs."""
    rdma: NotRequired[bool]
    """Whether nodes have RDMA devices, whose counters are read. Default: no."""
    receivers: NotRequired[Sequence[ReceiverArgs]]
    """Paging services and chats. Default: none."""
    runbooks_url: NotRequired[str]
    """Address of the folder of runbook pages. Default: alerts have the paths of pages in this repository."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    place: NotRequired[str]
    """`manager` or `worker` among several clusters behind one queue: the manager has a dashboard of all of
    them, and no tracking server; alerts about waits, failures and cost of teams are its own. Default: one
    cluster."""
    alert_log: NotRequired[bool]
    """Run a pod that writes alerts to its log. Default: no."""


class Monitoring(Component):
    """Prometheus, Alertmanager and Grafana in a closed namespace, with rules, dashboards and scrapes of ours.

    Prometheus and Alertmanager have disks of the default storage class; Grafana stores nothing. Its one login
    is created by a Job (`waiting/grafana_login.py`). Alertmanager's configuration has no secret, because the
    cloud authenticates its pod: readers of the state cannot use it. Credentials of `receivers` are files of a
    Secret that an administrator creates.
    """

    prometheus_url: pulumi.Output[str]
    """URL of Prometheus for programs of the platform."""

    def __init__(self, name: str, args: MonitoringArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        fence = home(name, args["agents"], self.child)
        inside = self.child(pulumi.ResourceOptions(depends_on=fence))
        login = self._login(name, args["image"], inside)
        alertmanager = config(args["platform"], args["teams"], args.get("receivers", ()))
        chosen = values(
            retention_days=args["retention_days"],
            storage_gib=args["storage_gib"],
            memory_gib=args["memory_gib"],
            alertmanager=alertmanager,
            rdma=args.get("rdma", False),
            pages=bool(args.get("receivers")),
        )
        defined = definitions(f"{name}-definitions", CHART, args["image"], inside, self.child)
        ready = self.child(pulumi.ResourceOptions(depends_on=[*fence, login, defined]))
        installed = release(f"{name}-{CHART}", CHART, chosen, ready, skip_crds=True)
        place = args.get("place")
        self._dashboards(name, inside, several=place == "manager")
        if args.get("alert_log", False):
            self._alert_log(name, args["image"], fence, inside)
        after_chart = self.child(pulumi.ResourceOptions(depends_on=[installed]))
        without = rules.ELSEWHERE[place] if place else ()
        bodies = [
            *rules.objects(args.get("runbooks_url", ROOT), without),
            *scrapes.objects(args.get("gpu_exporter")),
        ]
        for body in bodies:
            called = f"{name}-{body['kind'].lower()}-{body['metadata']['name']}"
            Manifest(called, body, after_chart)
        self.prometheus_url = after(pulumi.Output.from_input(PROMETHEUS_URL), [installed])
        self.register_declared()

    def _login(self, name: str, image: pulumi.Input[str], inside: pulumi.ResourceOptions) -> pulumi.Resource:
        """The Job that creates the login."""
        waits = WaitingProgram(
            program=LOGIN_PROGRAM,
            arguments={"name": LOGIN, "namespace": NAMESPACE, "seconds": str(_LOGIN_LIMIT_S)},
            name=f"{LOGIN}-{digest(LOGIN_PROGRAM.digest)}",
            namespace=NAMESPACE,
            account=LOGIN,
            image=image,
            limit_s=_LOGIN_LIMIT_S,
        )
        return secret_job(f"{name}-login", waits, self.child, inside)

    def _dashboards(self, name: str, inside: pulumi.ResourceOptions, *, several: bool) -> None:
        for dashboard in dashboards():
            if dashboard.several and not several:
                continue
            core.v1.ConfigMap(
                f"{name}-dashboard-{dashboard.layer}",
                metadata=meta.v1.ObjectMetaArgs(
                    name=f"dashboard-{dashboard.layer}", namespace=NAMESPACE, labels={_DASHBOARD_LABEL: "1"}
                ),
                data={f"{dashboard.layer}.json": grafana_json(dashboard)},
                opts=inside,
            )

    def _alert_log(
        self,
        name: str,
        image: pulumi.Input[str],
        fence: Sequence[pulumi.Resource],
        inside: pulumi.ResourceOptions,
    ) -> None:
        account = core.v1.ServiceAccount(
            f"{name}-{ALERT_LOG}-account",
            metadata=meta.v1.ObjectMetaArgs(name=ALERT_LOG, namespace=NAMESPACE),
            automount_service_account_token=False,
            opts=inside,
        )
        runs = ProgramDeployment(
            program=ALERT_LOG_PROGRAM,
            name=ALERT_LOG,
            namespace=NAMESPACE,
            account=ALERT_LOG,
            image=image,
            arguments={},
        )
        running = program_deployment(f"{name}-{ALERT_LOG}", runs, [*fence, account], self.child)
        core.v1.Service(
            f"{name}-{ALERT_LOG}-service",
            metadata=meta.v1.ObjectMetaArgs(name=ALERT_LOG, namespace=NAMESPACE),
            spec=core.v1.ServiceSpecArgs(
                selector={"app.kubernetes.io/name": ALERT_LOG},
                ports=[core.v1.ServicePortArgs(name="http", port=PORT, target_port=PORT)],
            ),
            opts=self.child(pulumi.ResourceOptions(depends_on=[running])),
        )
