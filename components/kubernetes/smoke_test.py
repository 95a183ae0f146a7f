"""The validation that gates a deploy: a Job that has to succeed for `up` to succeed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes import batch, core, meta, resource

from components.base import Component
from components.kubernetes import smoke_job
from components.kubernetes.queueing.kueue import PRIORITY_LABEL, QUEUE_NAME_LABEL
from components.kubernetes.queueing.kueue_values import EFA_DEVICE_CLASS
from components.kubernetes.smoke_bundle import Bundle, bundle
from components.ordering import after

CLAIM_TEMPLATE = "smoke-efa"
PLAN_SCHEMA = "trainstack.smoke-plan/1"
DIGEST_LENGTH = 10
# Until the queue admits the job: running jobs that make way have this long to save their state and stop.
QUEUE_TIMEOUT_S = 1800
# From admission to the first step: a new node boots and pulls a training image (Kueue itself gives up and
# queues anew after `kueue_values.PODS_READY_TIMEOUT`).
STARTUP_TIMEOUT_S = 1200
# The Job controller's and the provider's own time to see the end.
MARGIN_S = 120
# What Kueue writes into a Job. All else of a Job is fixed once it exists.
MUTATED_BY_KUEUE = ["spec.suspend", "spec.template.spec.nodeSelector", "spec.template.spec.tolerations"]


class SmokeTestArgs(TypedDict):
    """Arguments of `SmokeTest`."""

    namespace: pulumi.Input[str]
    """Namespace of the Job, with the queue in it."""
    queue: pulumi.Input[str]
    """LocalQueue that admits the Job."""
    priority: pulumi.Input[str]
    """Kueue priority class of the Job."""
    plan: pulumi.Input[Mapping[str, Any]]
    """The run's plan (schema trainstack.smoke-plan/1). What the other arguments say (nodes, GPUs, image, time
    limit, code) is filled in here. Anything in it that changes makes the next `up` validate again."""
    image: pulumi.Input[str]
    """Training image, by digest: a tag that moves would not be noticed."""
    nodes: int
    """Nodes to run on, one pod each."""
    gpus_per_node: int
    """GPUs of a node; the validation takes all."""
    efa_per_node: int
    """EFA devices of a node; the validation takes all. 0 for none."""
    efa_driver: str
    """How EFA devices reach pods: "device_plugin", "dra" or "none"."""
    cpu: int
    """Cores per pod, below what the node has left for pods."""
    memory_gib: int
    """Memory per pod, GiB, below what the node has left for pods; half of it may be shared memory."""
    pool_labels: pulumi.Input[Mapping[str, str]]
    """Labels of the nodes to validate."""
    topology_level: NotRequired[str]
    """Node label of the network layer to stay within if possible; only for a pool with a topology."""
    tracking_url: pulumi.Input[str]
    """Where MLflow listens, as pods see it."""
    credentials_secret_arn: pulumi.Input[str]
    """Secret with MLflow's user and password, readable for the service account `smoke`."""
    region: pulumi.Input[str]
    """Cloud region, for reading that secret."""
    pvc_name: NotRequired[pulumi.Input[str]]
    """Claim in the namespace for results and checkpoints; without it they go when the pods go."""
    pvc_folder: NotRequired[str]
    """Folder of the claim to write to, such as one that is linked to a bucket; default: its root."""
    timeout_s: int
    """Limit of the run itself, seconds."""
    queue_timeout_s: NotRequired[int]
    """Limit of waiting for admission, seconds."""
    startup_timeout_s: NotRequired[int]
    """Limit of starting the pods, seconds."""


class SmokeTest(Component):
    """Distributed training on the real nodes, as an indexed Job that `up` waits for.

    The Job is named after what it validates, so an unchanged stack is not validated again; a failed Job is
    replaced, that is run again, by the next `up`. It has no time to live: a vanished Job would be re-created.
    """

    job_name: pulumi.Output[str]
    """The Job, `smoke-<digest>`; whoever uses it comes after a passed validation."""
    result_path: pulumi.Output[str]
    """Path of the result JSON inside the pods."""
    digest: pulumi.Output[str]
    """Identity of what was validated: plan, image, code and the shape of the pods."""

    def __init__(self, name: str, args: SmokeTestArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        code = bundle()
        shape = shape_of(args)
        plan, self.digest = _identity(args, code, shape)
        job_name = self.digest.apply(lambda digest: f"smoke-{digest}")

        claims = [self._claim_template(name, args, shape)] if shape.efa and shape.efa_claims else []
        service = self._service(name, args)
        account = core.v1.ServiceAccount(
            f"{name}-account",
            metadata=meta.v1.ObjectMetaArgs(name=smoke_job.SERVICE_ACCOUNT, namespace=args["namespace"]),
            automount_service_account_token=False,
            opts=self.child(),
        )
        config = core.v1.ConfigMap(
            f"{name}-code",
            metadata=meta.v1.ObjectMetaArgs(name=job_name, namespace=args["namespace"]),
            binary_data={smoke_job.CODE_FILE: code.base64},
            data={smoke_job.PLAN_FILE: plan},
            immutable=True,
            opts=self.child(),
        )
        needs = [service, account, config, *claims]
        inputs = smoke_job.PodInputs(
            job=job_name,
            config=job_name,
            namespace=args["namespace"],
            image=args["image"],
            claim_template=CLAIM_TEMPLATE if claims else None,
            pool_labels=args["pool_labels"],
            pvc=args.get("pvc_name"),
            pvc_folder=args.get("pvc_folder"),
            environment=environment(args),
        )
        job = self._job(name, args, job_name, smoke_job.pod_template(inputs, shape), needs)

        self.job_name = after(job_name, [job])
        self.result_path = self.job_name.apply(lambda done: f"{smoke_job.work_dir(done)}/result.json")
        self.register_outputs(
            {"job_name": self.job_name, "result_path": self.result_path, "digest": self.digest}
        )

    def _service(self, name: str, args: SmokeTestArgs) -> core.v1.Service:
        return core.v1.Service(
            f"{name}-service",
            metadata=meta.v1.ObjectMetaArgs(name=smoke_job.SERVICE, namespace=args["namespace"]),
            spec=core.v1.ServiceSpecArgs(
                cluster_ip="None",
                selector=smoke_job.POD_LABELS,
                # Ranks look node 0 up before it is ready to serve anybody.
                publish_not_ready_addresses=True,
                ports=[
                    core.v1.ServicePortArgs(name="rendezvous", port=smoke_job.MASTER_PORT),
                    core.v1.ServicePortArgs(name="control", port=smoke_job.CONTROL_PORT),
                ],
            ),
            opts=self.child(),
        )

    def _claim_template(self, name: str, args: SmokeTestArgs, shape: smoke_job.PodShape) -> pulumi.Resource:
        return resource.v1.ResourceClaimTemplate(
            f"{name}-efa",
            metadata=meta.v1.ObjectMetaArgs(name=CLAIM_TEMPLATE, namespace=args["namespace"]),
            spec=resource.v1.ResourceClaimTemplateSpecArgs(
                spec=resource.v1.ResourceClaimSpecArgs(
                    devices=resource.v1.DeviceClaimArgs(
                        requests=[
                            resource.v1.DeviceRequestArgs(
                                name=smoke_job.CLAIM,
                                # An exact count: Kueue cannot account for the mode "All".
                                exactly=resource.v1.ExactDeviceRequestArgs(
                                    device_class_name=EFA_DEVICE_CLASS,
                                    allocation_mode="ExactCount",
                                    count=shape.efa,
                                ),
                            )
                        ]
                    )
                )
            ),
            # A template cannot be changed in place.
            opts=self.child(pulumi.ResourceOptions(replace_on_changes=["spec"], delete_before_replace=True)),
        )

    def _job(
        self,
        name: str,
        args: SmokeTestArgs,
        job_name: pulumi.Output[str],
        template: core.v1.PodTemplateSpecArgs,
        needs: Sequence[pulumi.Resource],
    ) -> batch.v1.Job:
        wait = args.get("queue_timeout_s", QUEUE_TIMEOUT_S) + run_s(args) + MARGIN_S
        return batch.v1.Job(
            f"{name}-job",
            metadata=meta.v1.ObjectMetaArgs(
                name=job_name,
                namespace=args["namespace"],
                labels={QUEUE_NAME_LABEL: args["queue"], PRIORITY_LABEL: args["priority"]},
                # Without it the provider would only look at a failed Job again, and fail again.
                annotations={"pulumi.com/replaceUnready": "true"},
            ),
            spec=job_spec(args, template),
            opts=self.child(
                pulumi.ResourceOptions(
                    depends_on=needs,
                    ignore_changes=MUTATED_BY_KUEUE,
                    # Never two validations at once: they would compete for the quota of one.
                    delete_before_replace=True,
                    custom_timeouts=pulumi.CustomTimeouts(create=f"{wait}s", update=f"{wait}s"),
                )
            ),
        )


def run_s(args: SmokeTestArgs) -> int:
    """From admission to the end, seconds."""
    return args.get("startup_timeout_s", STARTUP_TIMEOUT_S) + args["timeout_s"]


def job_spec(args: SmokeTestArgs, template: core.v1.PodTemplateSpecArgs) -> batch.v1.JobSpecArgs:
    """The Job itself: one pod a node, tried once."""
    return batch.v1.JobSpecArgs(
        completion_mode="Indexed",
        completions=args["nodes"],
        parallelism=args["nodes"],
        backoff_limit=0,
        active_deadline_seconds=run_s(args),
        pod_failure_policy=pod_failure_policy(),
        template=template,
    )


def pod_failure_policy() -> batch.v1.PodFailurePolicyArgs:
    """Fail at the first pod that fails, and let the Job's message say which, and whether the cloud took it.

    A pod replaced alone could not rejoin the others, so a lost node ends the run too.
    """
    lost = batch.v1.PodFailurePolicyOnPodConditionsPatternArgs(type="DisruptionTarget", status="True")
    failed = batch.v1.PodFailurePolicyOnExitCodesRequirementArgs(
        container_name=smoke_job.CONTAINER, operator="NotIn", values=[0]
    )
    return batch.v1.PodFailurePolicyArgs(
        rules=[
            batch.v1.PodFailurePolicyRuleArgs(action="FailJob", on_pod_conditions=[lost]),
            batch.v1.PodFailurePolicyRuleArgs(action="FailJob", on_exit_codes=failed),
        ]
    )


def shape_of(args: SmokeTestArgs) -> smoke_job.PodShape:
    """What one pod asks of its node."""
    return smoke_job.PodShape(
        gpus=args["gpus_per_node"],
        efa=args["efa_per_node"],
        efa_claims=args["efa_driver"] == "dra",
        cpu=args["cpu"],
        memory_gib=args["memory_gib"],
        topology_level=args.get("topology_level"),
    )


def environment(args: SmokeTestArgs) -> dict[str, pulumi.Input[str]]:
    """The variables of a pod that its place does not decide."""
    found: dict[str, pulumi.Input[str]] = {
        "MLFLOW_TRACKING_URI": args["tracking_url"],
        "MLFLOW_CREDENTIALS_SECRET_ARN": args["credentials_secret_arn"],
        "AWS_REGION": args["region"],
    }
    if args["efa_per_node"]:
        # NCCL falls back to TCP without a word; only its log tells which provider it chose.
        found["NCCL_DEBUG"] = "INFO"
    return found


def plan_text(args: SmokeTestArgs, code: Bundle, known: Mapping[str, Any]) -> str:
    """The plan as the pods read it; `known` are the values of its `plan` and `image`."""
    plan = {
        **known["plan"],
        "schema": PLAN_SCHEMA,
        "nodes": args["nodes"],
        "gpus_per_node": args["gpus_per_node"],
        "timeout_s": args["timeout_s"],
        "image": known["image"],
        "code_sha256": code.sha256,
    }
    return json.dumps(plan, sort_keys=True, indent=2, allow_nan=False)


def digest_of(identity: Mapping[str, Any]) -> str:
    """A short name for everything that `identity` holds."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def _identity(
    args: SmokeTestArgs, code: Bundle, shape: smoke_job.PodShape
) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
    """The plan as the pods read it, and the digest of everything that is validated."""
    plan = pulumi.Output.all(plan=args["plan"], image=args["image"]).apply(
        lambda known: plan_text(args, code, known)
    )
    return plan, pulumi.Output.all(plan=plan, pool=args["pool_labels"]).apply(
        lambda known: digest_of({**known, "shape": asdict(shape), "shared": "pvc_name" in args})
    )
