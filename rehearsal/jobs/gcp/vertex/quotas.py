"""Quotas of custom jobs: a job's usage per metric, and exceeded metrics.

Source: "aiplatform.googleapis.com/custom_model_training_..." in errors and listings of public repositories
(GoogleCloudPlatform/stable-diffusion-on-gcp issue 12, GoogleCloudPlatform/training-data-analyst issue 2457,
googleapis/python-aiplatform): by GPU, apart for Spot; machines without GPUs by their processors.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from infra.catalog.gcp import facts
from infra.catalog.gcp.jobs import jobs, quota_metric
from rehearsal.jobs.gcp.vertex.records import CustomJob

_SERVICE = "aiplatform.googleapis.com/"
_CPUS = f"{_SERVICE}custom_model_training_cpus"


def demand(job: CustomJob) -> Mapping[str, float]:
    """Usage of each metric by a running job."""
    found: Counter[str] = Counter()
    for pool in job.spec["workerPoolSpecs"]:
        machine, count = pool["machineSpec"], int(pool.get("replicaCount") or 0)
        known = jobs.machines.get(str(machine.get("machineType")))
        metric = quota_metric(known, spot=job.spot or job.flex_start) if known else None
        if metric:
            found[metric] += count * int(machine.get("acceleratorCount") or (known.gpus if known else 0))
        elif not machine.get("acceleratorType"):
            found[_CPUS] += count * (facts.vcpus(str(machine.get("machineType"))) or 0)
    return found


def beyond(job: CustomJob, running: Iterable[CustomJob], quotas: Mapping[str, float]) -> list[str]:
    """Metrics that a job would exceed beside the running jobs; one without a row is unlimited.

    `quotas` are by metric, with or without the name of the service.
    """
    used: Counter[str] = Counter()
    for one in running:
        used.update(demand(one))
    found = []
    for metric, wanted in demand(job).items():
        limit = quotas.get(metric, quotas.get(metric.removeprefix(_SERVICE)))
        if limit is not None and wanted and used[metric] + wanted > limit:
            found.append(metric)
    return sorted(found)
