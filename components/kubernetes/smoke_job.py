"""The pods of the deploy validation: one per node, with every accelerator of the node."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import core, meta

from components.kubernetes.queueing.quotas import EFA, GPU

SERVICE = "smoke"
SERVICE_ACCOUNT = "smoke"
CONTAINER = "smoke"
CLAIM = "efa"
CODE_FOLDER = "/opt/trainstack"
CODE_FILE = "smoke_training.zip"
PLAN_FILE = "plan.json"
CHECKPOINTS = "/checkpoints"
TERMINATION_LOG = "/dev/termination-log"
MASTER_PORT = 29500
# Where node 0's launcher hears the others: `smoke_training.runtime.session.CONTROL_PORT_OFFSET` above it.
CONTROL_PORT = MASTER_PORT + 1
USER_ID = 1000
# The EFA driver sets aside 5128 huge pages of 2 MiB a node, and libfabric uses them: awsdocs/
# amazon-eks-user-guide latest/ug/ml/node-efa.adoc (2024-12-18), whose example asks for this much.
EFA_HUGE_PAGES = {"hugepages-2Mi": "5120Mi"}
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
# Every pod of a Job carries the Job's name as this label (batch/v1 JobNameLabel).
JOB_LABEL = "batch.kubernetes.io/job-name"
# The Job of a CronJob gets its name when it is made; its pods read it from their label.
OWN_JOB = "JOB_NAME"
POD_LABELS = {"app.kubernetes.io/name": "trainstack-smoke"}
# Time for node 0 to write the result when the job is stopped.
GRACE_S = 60


@dataclass(frozen=True)
class PodShape:
    """What one pod asks of its node."""

    gpus: int
    efa: int
    efa_claims: bool
    cpu: int
    memory_gib: int
    topology_level: str | None

    def resources(self) -> core.v1.ResourceRequirementsArgs:
        """Requests equal to limits: the figures are not to depend on neighbours."""
        amounts = {"cpu": str(self.cpu), "memory": f"{self.memory_gib}Gi"}
        if self.gpus:
            amounts[GPU] = str(self.gpus)
        if self.efa:
            amounts |= EFA_HUGE_PAGES
        if self.efa and not self.efa_claims:
            amounts[EFA] = str(self.efa)
        claims = [core.v1.ResourceClaimArgs(name=CLAIM)] if self.efa and self.efa_claims else None
        return core.v1.ResourceRequirementsArgs(requests=amounts, limits=amounts, claims=claims)


@dataclass(frozen=True)
class PodInputs:
    """What the pods refer to."""

    job: pulumi.Input[str] | None
    """Name of the Job; None when each run is a Job of its own, made by a CronJob."""
    config: pulumi.Input[str]
    """The ConfigMap with code and plan."""
    namespace: pulumi.Input[str]
    image: pulumi.Input[str]
    claim_template: str | None
    pool_labels: pulumi.Input[Mapping[str, str]]
    pvc: pulumi.Input[str] | None
    pvc_folder: str | None
    environment: Mapping[str, pulumi.Input[str]]


def work_dir(job: str) -> str:
    """Folder in the pod where a validation leaves its result and checkpoints."""
    return f"{CHECKPOINTS}/smoke/{job}"


def pod_template(inputs: PodInputs, shape: PodShape) -> core.v1.PodTemplateSpecArgs:
    """The template of the indexed Job's pods."""
    annotations = None
    if shape.topology_level:
        annotations = {"kueue.x-k8s.io/podset-preferred-topology": shape.topology_level}
    claims = None
    if inputs.claim_template is not None:
        claims = [
            core.v1.PodResourceClaimArgs(name=CLAIM, resource_claim_template_name=inputs.claim_template)
        ]
    return core.v1.PodTemplateSpecArgs(
        metadata=meta.v1.ObjectMetaArgs(labels=POD_LABELS, annotations=annotations),
        spec=core.v1.PodSpecArgs(
            restart_policy="Never",
            subdomain=SERVICE,
            service_account_name=SERVICE_ACCOUNT,
            automount_service_account_token=False,
            enable_service_links=False,
            termination_grace_period_seconds=GRACE_S,
            affinity=_affinity(inputs.pool_labels),
            tolerations=[core.v1.TolerationArgs(key=GPU, operator="Exists", effect="NoSchedule")],
            security_context=core.v1.PodSecurityContextArgs(
                run_as_user=USER_ID,
                run_as_group=USER_ID,
                seccomp_profile=core.v1.SeccompProfileArgs(type="RuntimeDefault"),
            ),
            resource_claims=claims,
            init_containers=[_folder_maker(inputs)] if inputs.pvc is not None else None,
            containers=[_container(inputs, shape)],
            volumes=_volumes(inputs, shape),
        ),
    )


def _affinity(pool_labels: pulumi.Input[Mapping[str, str]]) -> core.v1.AffinityArgs:
    # By affinity, not by nodeSelector: Kueue writes its own selectors into the latter, so that field is left
    # to it, while these labels must follow the pool when it changes.
    expressions = pulumi.Output.from_input(pool_labels).apply(
        lambda labels: [
            core.v1.NodeSelectorRequirementArgs(key=key, operator="In", values=[value])
            for key, value in sorted(labels.items())
        ]
    )
    return core.v1.AffinityArgs(
        node_affinity=core.v1.NodeAffinityArgs(
            required_during_scheduling_ignored_during_execution=core.v1.NodeSelectorArgs(
                node_selector_terms=[core.v1.NodeSelectorTermArgs(match_expressions=expressions)]
            )
        ),
        pod_anti_affinity=core.v1.PodAntiAffinityArgs(
            required_during_scheduling_ignored_during_execution=[
                core.v1.PodAffinityTermArgs(
                    topology_key="kubernetes.io/hostname",
                    label_selector=meta.v1.LabelSelectorArgs(match_labels=POD_LABELS),
                )
            ]
        ),
    )


def _container(inputs: PodInputs, shape: PodShape) -> core.v1.ContainerArgs:
    return core.v1.ContainerArgs(
        name=CONTAINER,
        image=inputs.image,
        command=["python", f"{CODE_FOLDER}/{CODE_FILE}"],
        args=["node", "--plan", f"{CODE_FOLDER}/{PLAN_FILE}"],
        env=[
            *([] if inputs.job is not None else [_of_itself(OWN_JOB, f"metadata.labels['{JOB_LABEL}']")]),
            _of_itself("NODE_RANK", f"metadata.annotations['{INDEX_ANNOTATION}']"),
            *(core.v1.EnvVarArgs(name=key, value=value) for key, value in _environment(inputs).items()),
        ],
        resources=shape.resources(),
        termination_message_path=TERMINATION_LOG,
        termination_message_policy="FallbackToLogsOnError",
        security_context=_unprivileged(core.v1.SecurityContextArgs(run_as_non_root=True)),
        volume_mounts=[
            core.v1.VolumeMountArgs(name="code", mount_path=CODE_FOLDER, read_only=True),
            _checkpoints(inputs),
            core.v1.VolumeMountArgs(name="shared-memory", mount_path="/dev/shm"),  # noqa: S108 the kernel's path
            core.v1.VolumeMountArgs(name="scratch", mount_path="/tmp"),  # noqa: S108 a volume of its own
        ],
    )


def _of_itself(name: str, path: str) -> core.v1.EnvVarArgs:
    """A variable that the pod reads from its own object."""
    reference = core.v1.ObjectFieldSelectorArgs(field_path=path)
    return core.v1.EnvVarArgs(name=name, value_from=core.v1.EnvVarSourceArgs(field_ref=reference))


def _checkpoints(inputs: PodInputs) -> core.v1.VolumeMountArgs:
    return core.v1.VolumeMountArgs(name="checkpoints", mount_path=CHECKPOINTS, sub_path=inputs.pvc_folder)


def _environment(inputs: PodInputs) -> dict[str, pulumi.Input[str]]:
    # A reference to a variable works only after that variable, so the pod's own Job comes first in the list.
    job = pulumi.Output.from_input(f"$({OWN_JOB})" if inputs.job is None else inputs.job)
    return {
        "MASTER_ADDR": pulumi.Output.concat(job, f"-0.{SERVICE}.", inputs.namespace, ".svc.cluster.local"),
        "MASTER_PORT": str(MASTER_PORT),
        "WORK_DIR": job.apply(work_dir),
        "TERMINATION_MESSAGE_PATH": TERMINATION_LOG,
        # The user has no entry in the image's /etc/passwd, and the root file system is read-only.
        "HOME": "/tmp",  # noqa: S108 a volume of its own
        "USER": "trainstack",
        **inputs.environment,
    }


def _folder_maker(inputs: PodInputs) -> core.v1.ContainerArgs:
    """Make the validation's folder on the shared volume, which a new file system only lets root do."""
    return core.v1.ContainerArgs(
        name="folder",
        image=inputs.image,
        command=["install", "-d", "-m", "1777", f"{CHECKPOINTS}/smoke"],
        resources=core.v1.ResourceRequirementsArgs(requests={"cpu": "100m", "memory": "64Mi"}),
        security_context=_unprivileged(core.v1.SecurityContextArgs(run_as_user=0, run_as_group=0)),
        volume_mounts=[_checkpoints(inputs)],
    )


def _unprivileged(context: core.v1.SecurityContextArgs) -> core.v1.SecurityContextArgs:
    context.allow_privilege_escalation = False
    context.read_only_root_filesystem = True
    context.capabilities = core.v1.CapabilitiesArgs(drop=["ALL"])
    return context


def _volumes(inputs: PodInputs, shape: PodShape) -> list[core.v1.VolumeArgs]:
    checkpoints = core.v1.VolumeArgs(name="checkpoints", empty_dir=core.v1.EmptyDirVolumeSourceArgs())
    if inputs.pvc is not None:
        claim = core.v1.PersistentVolumeClaimVolumeSourceArgs(claim_name=inputs.pvc)
        checkpoints = core.v1.VolumeArgs(name="checkpoints", persistent_volume_claim=claim)
    # The 64 MiB default is too small for the buffers that ranks of one node share. It counts as memory.
    shared = core.v1.EmptyDirVolumeSourceArgs(
        medium="Memory", size_limit=f"{max(1, shape.memory_gib // 2)}Gi"
    )
    return [
        core.v1.VolumeArgs(name="code", config_map=core.v1.ConfigMapVolumeSourceArgs(name=inputs.config)),
        checkpoints,
        core.v1.VolumeArgs(name="shared-memory", empty_dir=shared),
        core.v1.VolumeArgs(name="scratch", empty_dir=core.v1.EmptyDirVolumeSourceArgs()),
    ]
