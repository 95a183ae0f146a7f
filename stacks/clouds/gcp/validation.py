"""Permissions and results folder of the pods of a validation on Google Cloud."""

from dataclasses import replace

import pulumi
import pulumi_gcp as gcp

from components.gcp.alerts.alert_lines import lines_of_pods
from components.gcp.cluster.gke import GcpCluster
from components.gcp.pod_account import GcpPodAccount
from components.gcp.storage.tiers import GcpStorage
from components.gcp.teams.team_data import WRITE
from components.gcp.tracking.server import grants
from components.gcp.validation.alert_topic import GcpAlertTopic
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from stacks.clouds.gcp.storage import GcpStore
from stacks.parts import Alerts, ServiceAccount, ValidationAccess
from stacks.validation import RESULTS


def validation_on_gcp(
    spec: StackSpec,
    on: GcpSpec,
    *,
    number: pulumi.Output[str],
    gke: GcpCluster,
    store: GcpStore,
    pods: ServiceAccount,
    opts: pulumi.ResourceOptions,
) -> ValidationAccess:
    """A folder for results; with a schedule, also a topic, and e-mail on log lines.

    The pods copy results themselves: Managed Lustre is copied by the clock, and not every stack has one.
    """
    folder = results_folder(spec, store.tiers, opts)
    account = GcpPodAccount(
        f"{spec.name}-smoke",
        {
            "project": on.project,
            # IAM accepts the pods of a cluster once its identity pool exists.
            "project_number": pulumi.Output.all(number, gke.workload_pool).apply(lambda known: str(known[0])),
            "namespace": pods.namespace,
            "service_account": pods.name,
            # A run that is recorded again writes its result again.
            "folders": {"results": {"resource": folder.bucket, "folder": folder.name, "role": WRITE}},
        },
        opts,
    )
    access = ValidationAccess(
        environment=grants(on.project)["environment"],
        results=pulumi.Output.concat(store.checkpoint_uri, RESULTS),
        copies_results=True,
        alerts=None,
        ready=[account],
    )
    if not spec.smoke.schedule:
        return access
    topic = GcpAlertTopic(
        f"{spec.name}-training-alerts",
        {
            "region": spec.region,
            "lines": lines_of_pods(on.project, gke.cluster_name, pods.namespace),
            "publisher": account.principal,
            "emails": spec.budget.alert_emails,
        },
        opts,
    )
    alerts = Alerts(topic=topic.topic, plan={"alert_pubsub_topic": topic.topic})
    return replace(access, alerts=alerts, ready=[account, topic])


def results_folder(
    spec: StackSpec, tiers: GcpStorage, opts: pulumi.ResourceOptions
) -> gcp.storage.ManagedFolder:
    """The managed folder of results, with and without a cluster: a growing stack keeps it."""
    return gcp.storage.ManagedFolder(
        f"{spec.name}-smoke-results",
        bucket=tiers.checkpoint_bucket,
        name=f"{RESULTS.removeprefix('/')}/",
        # The folder and its permissions; results remain.
        force_destroy=True,
        opts=opts,
    )
