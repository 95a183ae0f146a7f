"""Values of Kueue's chart and its configuration (checked against chart and API of 0.19.2)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents.clusters.dispatch import DISPATCHER
from agents.gpu_ledger.attempts import PROJECT_LABEL
from agents.shared.kueue import DEADLINE_LABEL
from components.kubernetes.network_policies import Ports

# Only namespaces with this label are managed, and in those every job and pod is: nothing starts past the
# quota. Its webhooks watch the same namespaces, so a Kueue that is down stops no pod of the platform.
MANAGED_LABEL = "trainstack.dev/queueing"
MANAGED = "required"
# The API group visibility.kueue.x-k8s.io is served by the controller, too: while it is down, no namespace
# can be deleted.
_WEBHOOKS, _VISIBILITY, _METRICS = 9443, 8082, 8443
PORTS = Ports(api_server=(_WEBHOOKS, _VISIBILITY), metrics=(_METRICS,))
# Time for a new GPU node to boot and pull a training image of some 10 GB. Kueue's own default (30 min since
# 0.19) is not relied on: too short and a slow node means an endless loop of evictions, too long and a job
# that cannot get all its pods holds its GPUs.
PODS_READY_TIMEOUT = "20m"
# Then the job is deactivated: without a limit, one with a mistyped image holds its GPUs again and again. It
# held them 11 times for 20 minutes within 6 h 40 min. Lost nodes count too, and Kueue never resets the count
# of a job that runs (0.19.2 pkg/controller/core/workload_controller.go, `reconcileNotReadyTimeout`), so a low
# limit would end long runs.
MOST_REQUEUES = 10
# Less than the five minutes after which pods of a lost node are deleted (they tolerate it so long):
# until then the whole gang can be queued again; afterwards a Job counts failed pods and ends.
PODS_RECOVERY_TIMEOUT = "3m"
FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob")
# Time until jobs of a worker that does not respond start elsewhere. Upgrades of a control plane interrupt its
# API for a few minutes, and meanwhile its jobs run on. Kueue's default is 15 minutes.
WORKER_LOST_TIMEOUT = "10m"
# By default Kueue keeps finished Workloads for ever, and in its memory (kubernetes-sigs/kueue#1618); their
# Jobs stay. A ledger that is down for longer than this misses what ended before.
WORKLOADS_KEPT = "168h"

# Kueue keeps every Job, pod and Workload of its namespaces in memory, finished ones too: 1.0 GiB with 10,000
# jobs of one pod, 1.6 GiB while they are deleted (benchmarks/RESULTS.md). The limit holds what any four teams
# may keep (`tenancy.py`, docs/adr/0063).
_MANAGER = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "6Gi"}}


def values(*, claimed: Mapping[str, str], uncounted: Sequence[str] = (), manages: str = "") -> dict[str, Any]:
    """Values of the chart; `claimed`: device class by the resource that its devices count as (DRA).

    `uncounted`: further requested resources that no queue counts. `manages`: name of the stack whose clusters
    this one sends jobs to; default: it runs jobs itself.
    """
    return {
        # Monitoring installs the kind ServiceMonitor later or never, and scrapes Kueue with one of its own
        # (`monitoring/scrapes.py`).
        "enablePrometheus": False,
        "controllerManager": {
            "replicas": 2,
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
            "manager": {"resources": _MANAGER},
        },
        # JSON is YAML for the chart.
        "managerConfig": {
            "controllerManagerConfigYaml": json.dumps(
                {**manager_config(claimed, uncounted), **(_managing(manages) if manages else {})}, indent=2
            )
        },
    }


def manager_config(claimed: Mapping[str, str], uncounted: Sequence[str] = ()) -> dict[str, Any]:
    """The controller's configuration file (config.kueue.x-k8s.io/v1beta2)."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "featureGates": {
            # A larger slice replaces a running one once it has quota, whatever the budget and the closing
            # time of its pool say then: either would end a job that only wanted to grow.
            "ElasticJobsViaWorkloadSlices": False,
            # Kueue gives back the quota of pods that are done, and its webhook refuses that it takes it
            # again: once a JobSet restarts that has a part which had succeeded, every reconciliation fails
            # before preemption, deactivation and time limits (kubernetes-sigs/kueue#14811 and #14609;
            # v0.19.2 pkg/webhooks/workload_webhook.go, `validateReclaimablePodsUpdate`). The job runs on
            # with less quota than it uses, and cannot be stopped.
            "ReclaimablePods": False,
        },
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": f":{_METRICS}", "enableClusterQueueResources": True},
        "webhook": {"port": _WEBHOOKS},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "clientConnection": {"qps": 300, "burst": 500},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": "kueue-webhook-service",
            "webhookSecretName": "kueue-webhook-server-cert",
        },
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchLabels": {MANAGED_LABEL: MANAGED}},
        "waitForPodsReady": {
            "timeout": PODS_READY_TIMEOUT,
            "recoveryTimeout": PODS_RECOVERY_TIMEOUT,
            "blockAdmission": False,
            "requeuingStrategy": {
                "timestamp": "Eviction",
                "backoffLimitCount": MOST_REQUEUES,
                "backoffBaseSeconds": 60,
                "backoffMaxSeconds": 1800,
            },
        },
        "integrations": _integrations(*FRAMEWORKS, "pod"),
        "objectRetentionPolicies": {"workloads": {"afterFinished": WORKLOADS_KEPT}},
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "resources": _resources(claimed, uncounted),
    }


def _integrations(*frameworks: str) -> dict[str, Any]:
    # Users set the first label on their jobs, to count GPU-hours by it; `trainstack queue` shows the last.
    return {"frameworks": list(frameworks), "labelKeysToCopy": [PROJECT_LABEL, DEADLINE_LABEL]}


def _managing(stack: str) -> dict[str, Any]:
    """Settings that differ in a cluster that sends jobs to others (docs/adr/0093)."""
    return {
        # A connection to a worker watches every framework there, in all namespaces: without pods, the
        # manager cannot read those of the platform.
        "integrations": _integrations(*FRAMEWORKS),
        "multiKueue": {
            # Kueue deletes jobs of this origin on workers that it does not know itself, so no two managers
            # may have the same one.
            "origin": stack,
            "dispatcherName": DISPATCHER,
            "workerLostTimeout": WORKER_LOST_TIMEOUT,
        },
    }


def _resources(claimed: Mapping[str, str], uncounted: Sequence[str]) -> dict[str, Any]:
    # No queue covers huge pages and scratch disk, which jobs may request; undeclared would mean "never".
    prefixes = ["hugepages-", "ephemeral-storage"]
    prefixes += dict.fromkeys(name for name in uncounted if not name.startswith(tuple(prefixes)))
    resources: dict[str, Any] = {"excludeResourcePrefixes": prefixes}
    if claimed:
        # A claim counts against the same quota as a request for the device plugin's resource.
        resources["deviceClassMappings"] = [
            {"name": resource, "deviceClassNames": [device_class]}
            for resource, device_class in claimed.items()
        ]
    return resources
