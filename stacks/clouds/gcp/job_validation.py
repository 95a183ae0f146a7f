"""Validation of a stack without a cluster on Google Cloud: a custom job with its own service account."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.gcp.alerts.alert_lines import lines_of_jobs
from components.gcp.jobs.folders import RUNS, GcpJobFolders
from components.gcp.jobs.schedule import GcpJobSchedule
from components.gcp.jobs.tracking import ASKED_BY
from components.gcp.jobs.validator import GcpValidator
from components.gcp.pools.offers import cpu_offer, link_rates, node_offer, peak_tflops
from components.gcp.storage.tiers import GcpStorage
from components.gcp.validation.alert_topic import GcpAlertTopic
from infra.catalog.gcp import facts
from infra.catalog.gcp.jobs import jobs
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import JobMachineSpec
from stacks.clouds.gcp.validation import results_folder
from stacks.parts import Alerts, JobValidation, MachinePool
from stacks.validation import RESULTS

# Usable resources of a machine: those of a GKE node with the fewest pods, less than the total.
_PODS_PER_NODE, _DISK_GIB = 8, 200
_MARGIN_S = 600
"""The deploy itself ends a validation without machines (`smoke.queue_timeout_s`), before the service does."""


def job_validation_on_gcp(
    spec: StackSpec,
    on: GcpSpec,
    machine: JobMachineSpec,
    *,
    tiers: GcpStorage,
    folders: GcpJobFolders,
    key: pulumi.Output[str],
    tracking: pulumi.Output[str],
    signs_role: pulumi.Output[str],
    usd_per_hour: float | None,
    opts: pulumi.ResourceOptions,
) -> JobValidation:
    """A job on machines of one type, and its schedule; `tracking` is the service of MLflow."""
    account = GcpValidator(
        f"{spec.name}-smoke",
        {
            "project": on.project,
            "region": spec.region,
            "checkpoint_bucket": tiers.checkpoint_bucket,
            "results": results_folder(spec, tiers, opts).name,
            "artifact_bucket": tiers.artifact_bucket,
            "code": folders.code,
            "runs": folders.runs,
            "tracking": tracking,
            "signs_role": signs_role,
        },
        opts,
    )
    topic = _topic(spec, on, account, opts) if spec.smoke.schedule else None

    def repeat(request: pulumi.Output[str], passed: pulumi.ResourceOptions) -> pulumi.Output[str]:
        assert spec.smoke.schedule is not None and topic is not None  # only called with a schedule
        return GcpJobSchedule(
            f"{spec.name}-smoke-repeated",
            {
                "project": on.project,
                "region": spec.region,
                "stack": spec.name,
                "schedule": spec.smoke.schedule,
                "request": request,
                "account": account.email,
                "channels": topic.channels,
            },
            pulumi.ResourceOptions.merge(opts, passed),
        ).name

    return JobValidation(
        account=on.project,
        machine=_as_pool(machine, usd_per_hour),
        place=_place(spec, machine, account.email, tiers.artifact_bucket, key),
        environment={"GOOGLE_CLOUD_PROJECT": on.project, **ASKED_BY},
        results=pulumi.Output.concat("gs://", tiers.checkpoint_bucket, RESULTS),
        alerts=Alerts(topic=topic.topic, plan={"alert_pubsub_topic": topic.topic}) if topic else None,
        repeat=repeat,
    )


def _place(
    spec: StackSpec,
    machine: JobMachineSpec,
    account: pulumi.Output[str],
    bucket: pulumi.Output[str],
    key: pulumi.Output[str],
) -> pulumi.Output[Mapping[str, Any]]:
    """Fields of `runplan.VertexOptions`."""
    flex = machine.purchase.kind == "flex_start"
    return pulumi.Output.all(
        service_account=account,
        accelerator_type=jobs.machines[machine.machine].accelerator,
        output_uri=pulumi.Output.concat("gs://", bucket, f"/{RUNS}"),
        kms_key=key,
        reservation=machine.reservation,
        flex_wait_s=spec.smoke.queue_timeout_s + _MARGIN_S if flex else None,
    )


def _topic(
    spec: StackSpec, on: GcpSpec, account: GcpValidator, opts: pulumi.ResourceOptions
) -> GcpAlertTopic:
    return GcpAlertTopic(
        f"{spec.name}-training-alerts",
        {
            "region": spec.region,
            "lines": lines_of_jobs(on.project, spec.name),
            "publisher": account.member,
            "emails": spec.budget.alert_emails,
        },
        opts,
    )


def _as_pool(machine: JobMachineSpec, usd_per_hour: float | None) -> MachinePool:
    """The machine type as a pool. Vertex AI documents no fabric between machines."""
    processors, known = facts.cpu_type(machine.machine), dict[str, Any]()
    if processors is not None:
        offer = cpu_offer(
            processors.vcpu, processors.memory_gib, pods_per_node=_PODS_PER_NODE, disk_gib=_DISK_GIB
        )
    else:
        hardware = facts.machine_type(machine.machine)
        offer = node_offer(
            hardware, pods_per_node=_PODS_PER_NODE, disk_gib=_DISK_GIB, rdma=False, networks=()
        )
        known = {"peak_tflops": peak_tflops(hardware), **link_rates(hardware, rdma=False)}
    return MachinePool(machine=machine.machine, offer=offer, usd_per_hour=usd_per_hour, facts=known)
