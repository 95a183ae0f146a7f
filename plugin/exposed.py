"""Components of the package, and those that stay out of it with the reason."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from components.base import Component

NAME: Final = "trainstack"
"""Name of the package, which is also that of the components' type tokens."""

EXPOSED: Final[Mapping[str, str]] = {
    "AwsAccessLog": "aws.storage.access_log",
    "AwsAlertTopic": "aws.validation.alert_topic",
    "AwsAutoscaling": "aws.cluster.autoscaling",
    "AwsBucket": "aws.storage.bucket",
    "AwsBudget": "aws.money.budget",
    "AwsCluster": "aws.cluster.eks",
    "AwsCpuPool": "aws.pools.cpu_pool",
    "AwsDatabase": "aws.tracking.database",
    "AwsDisks": "aws.storage.disks",
    "AwsGpuPool": "aws.pools.gpu_pool",
    "AwsHomes": "aws.storage.homes",
    "AwsLoadBalancer": "aws.tracking.load_balancer",
    "AwsLustre": "aws.storage.lustre",
    "AwsMembers": "aws.teams.members",
    "AwsNetwork": "aws.network.vpc",
    "AwsPodLogs": "aws.cluster.pod_logs",
    "AwsPodRole": "aws.pod_role",
    "AwsStorage": "aws.storage.tiers",
    "AwsStorageAlarms": "aws.storage.alarms",
    "AwsTeamData": "aws.teams.team_data",
    "AwsTracking": "aws.tracking.server",
    "GcpAcceleratorNetworks": "gcp.network.accelerators",
    "GcpAccessLog": "gcp.storage.access_log",
    "GcpApis": "gcp.apis",
    "GcpBucket": "gcp.storage.bucket",
    "GcpBudget": "gcp.money.budget",
    "GcpCluster": "gcp.cluster.gke",
    "GcpCpuPool": "gcp.pools.cpu_pool",
    "GcpDatabase": "gcp.tracking.database",
    "GcpDatabaseLogin": "gcp.tracking.login",
    "GcpFabricInstallers": "gcp.pools.installers",
    "GcpGpuPool": "gcp.pools.gpu_pool",
    "GcpHomes": "gcp.storage.homes",
    "GcpIdleAlert": "gcp.money.idle",
    "GcpIdleNodes": "gcp.cluster.idle_nodes",
    "GcpLustre": "gcp.storage.lustre",
    "GcpLustreCopies": "gcp.storage.copies",
    "GcpMembers": "gcp.teams.members",
    "GcpNetwork": "gcp.network.vpc",
    "GcpNetworkObjects": "gcp.network.objects",
    "GcpPodAccount": "gcp.pod_account",
    "GcpStorage": "gcp.storage.tiers",
    "GcpStorageAlerts": "gcp.alerts.storage",
    "GcpTeamData": "gcp.teams.team_data",
    "GcpTracking": "gcp.tracking.server",
    "Accelerators": "kubernetes.accelerators",
    "CapacityWindows": "kubernetes.capacity.capacity_windows",
    "GpuLedger": "kubernetes.accounting.gpu_ledger",
    "IdleGpus": "kubernetes.idle.idle_gpus",
    "Monitoring": "kubernetes.monitoring.stack",
    "Queueing": "kubernetes.queueing.queues",
    "SharedVolume": "kubernetes.volumes",
    "Trainer": "kubernetes.training.trainer",
}
"""Component -> its module below `components`."""

_JOBS = "part of a stack without a cluster, whose jobs and notebooks only the `trainstack` command starts"
_GATE = "runs the validation from a plan that is made from a checked spec"
_PROGRAM = "runs a program of this package in the cloud, for another component"
_INNER = "part of `AwsTracking` and `GcpTracking`"
_VOLUMES = "takes volumes that are no declared outputs of the storage"
_SPEC = "takes objects that are made from a checked spec"
_CLUSTERS = "connects the stacks of several clusters, which are made from one checked spec"
_SLURM = "new, and never deployed to a real account; use the profile large-slurm"
LEFT_OUT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "AwsBudgetStop", "AwsCleaning", "AwsJobSchedule", "AwsMlflow", "AwsPeople", "AwsPeopleRights",
            "AwsRecords", "AwsStudio", "AwsValidationRole", "GcpBudgetStop", "GcpJobFolders", "GcpJobRoles",
            "GcpJobSchedule", "GcpJobTracking", "GcpKeyUsers", "GcpNotebook", "GcpPerson",
            "GcpTrackingVisitors", "GcpValidator", "JobGate",
        ),
        _JOBS,
    ),
    **dict.fromkeys(("SmokeHome", "SmokeSchedule", "SmokeTest", "GcpAlertTopic"), _GATE),
    **dict.fromkeys(("AwsFunction", "GcpFunction", "GcpMailedAlerts"), _PROGRAM),
    **dict.fromkeys(("MlflowLogins", "MlflowSchema", "MlflowServer", "MlflowVisitors"), _INNER),
    **dict.fromkeys(("SharedFolders", "TeamCheckpoints", "TeamClaims", "TeamVolumes"), _VOLUMES),
    "AdmissionPolicies": _SPEC,
    **dict.fromkeys(
        (
            "AwsDispatcherRole", "AwsManagerLogin", "AwsPeering", "Dispatching", "Fencing",
            "GcpDispatcherUse", "GcpFederatedManagerLogin", "GcpManagerLogin", "ManagerAccess",
        ),
        _CLUSTERS,
    ),
    **dict.fromkeys(
        (
            "AwsSlurmAccounts", "AwsSlurmCluster", "AwsSlurmMonitoring", "AwsSlurmNodes", "AwsSlurmQueue",
            "AwsSlurmRole", "AwsSlurmTracking", "GcpSlurmAccounts", "GcpSlurmCluster", "KubernetesSlurm",
            "LoginPodScript", "SlurmOperator",
        ),
        _SLURM,
    ),
}  # fmt: skip
"""Component that is not in the package -> reason."""


def component(name: str) -> type[Component]:
    """The class of an exposed component; only its own cloud's SDK is imported."""
    found: type[Component] = getattr(import_module(f"components.{EXPOSED[name]}"), name)
    return found
