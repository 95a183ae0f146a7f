"""Settings of the rules: amounts, days and thresholds that differ between teams."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class RuleSettings:
    """Settings with their defaults; each default has its reason."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    alert_at_percent: float = 80.0
    """A budget warns at this share of its limit or earlier: a month's last fifth is six days to react."""
    budget_stack: str = ""
    """Stack with the budget of this one, which has none: of a cluster of a large stack, its manager. It must
    be an environment of the configuration, with this `budget_tag` in its `covered_tags`."""
    budget_tag: str = ""
    """Tag of machines that this budget counts, as KEY=VALUE; MLS-COST-09 requires it on all pools."""
    covered_tags: tuple[str, ...] = ()
    """Tags, as KEY=VALUE, of stacks without a budget; a budget of this stack must count each."""
    max_usd_per_hour: float = 250.0
    """Of all pools at their maximum size, by list price: about eight machines of eight A100s."""
    log_retention_days: int = 365
    """Logs are kept no longer than this, and never without end."""
    least_log_retention_days: int = 7
    """Logs are kept at least this long, to investigate an incident of last week."""
    today: datetime.date = field(default_factory=datetime.date.today)
    """Day of the audit, for support periods and expiry dates."""
    node_agents: tuple[str, ...] = (
        *("nvcr.io/nvidia/k8s-device-plugin", "nvcr.io/nvidia/k8s/dcgm-exporter"),
        *("*.amazonaws.com/eks/aws-*-csi-driver", "public.ecr.aws/*/aws-*-csi-driver"),
        *("*.amazonaws.com/eks/aws-efa-k8s-device-plugin", "gke.gcr.io/nvidia-*"),
        "us-docker.pkg.dev/gce-ai-infra/gpudirect-*",
    )
    """Images of daemons that may be privileged and use their node's namespaces: they manage its devices."""
    pod_security_policies: tuple[str, ...] = ("trainstack-node",)
    """Names of admission policies that replace the standard `baseline` and exempt named daemons: where the
    network of GPUs has a daemon in each pod, only `privileged` admits it. The rule checks that they mention
    every field of `baseline`, deny, and match every pod; it does not evaluate their expressions."""
    host_network_pools: tuple[str, ...] = ()
    """Pools in which pods may use the node's network and shared memory, where NCCL has no other way: none has
    with EFA and its device plugin."""
    team_namespaces: tuple[str, ...] = ("team-*", "*-team")
    """Names of namespaces in which members start jobs, besides those with a queue or with writers."""
    most_job_retries: int = 3
    """A job that failed four times does not succeed by itself. Kubernetes tries seven times."""
    control_plane_logs: tuple[str, ...] = ("api", "audit", "authenticator")
    """Logs of requests and of identities. Those of scheduler and controllers serve operation only."""
    admin_secrets: tuple[str, ...] = ("*mlflow*admin*", "*admin*mlflow*", "*tracking*admin*")
    """Names of secrets with the login of the tracking server's administrator."""
    production: bool = True
    """Whether a resource without an environment tag is production: a missing tag must not relax a rule."""
    environment_tags: tuple[str, ...] = ("environment", "env", "stage")
    """Environment tags in lower case; the first one that is present counts."""
    production_names: tuple[str, ...] = ("production", "prod", "live")
    """Their values that mean production, in lower case."""
    result_words: tuple[str, ...] = ("checkpoint", "ckpt", "artifact", "mlflow", "model")
    """A bucket with such a name or tag holds results that only another training run can reproduce."""
    checkpoint_words: tuple[str, ...] = ("checkpoint", "ckpt")
    """A bucket with such a name holds checkpoints, which are not needed long after the run has ended."""
    abort_uploads_after_days: int = 7
    """An upload of a checkpoint takes less than a week; a job that was interrupted longer restarts it."""
    dataset_words: tuple[str, ...] = ("dataset", "training-data")
    """A bucket with such a name holds training data."""
    least_checkpoint_days: int = 14
    """Minimum age of a checkpoint before deletion: a member returns from two weeks of leave and resumes."""
    data_services: tuple[str, ...] = ("s3", "s3express", "secretsmanager", "dynamodb", "rds-data", "rds-db")
    """Services whose actions reach data: pods may use them, nodes may not."""
    data_policies: tuple[str, ...] = (
        *("AmazonS3", "SecretsManager", "AmazonDynamoDB", "AmazonElasticFileSystemClient", "AmazonRDSData"),
        *("AdministratorAccess", "PowerUserAccess", "ReadOnlyAccess", "AmazonSageMakerFullAccess"),
    )
    """Beginnings of names of policies of AWS that grant such actions."""
    node_policies: tuple[str, ...] = (
        *("AmazonEKSWorkerNode", "AmazonEC2ContainerRegistry", "AmazonEKS_CNI_Policy"),
        *("AmazonEBSCSIDriver", "AmazonEFSCSIDriver"),
        *("AmazonSSMManagedInstanceCore", "CloudWatchAgentServerPolicy"),
    )
    """Beginnings of names of those that nodes have. What any other grants is undetermined."""
    deputies: tuple[str, ...] = (
        *("eks.amazonaws.com", "vpc-flow-logs.amazonaws.com", "scheduler.amazonaws.com"),
        *("sagemaker.amazonaws.com", "bedrock.amazonaws.com"),
    )
    """Services that ask, each in its own guide, to be trusted for one account only (confused deputy).

    Read on 2026-11-24: the page on it in awsdocs/amazon-eks-user-guide@5534e8cc latest/ug/security, in
    awsdocs/amazon-sagemaker-developer-guide@4e43e48e doc_source and in the EventBridge Scheduler User Guide;
    awsdocs/amazon-vpc-user-guide@06e98d97 doc_source/flow-logs-cwl.md. Of Bedrock only the contents of its
    guide, which have such a page: what it says is to be confirmed.
    """
    most_validation_days: int = 90
    """A validation of training without a schedule is valid for a quarter: drivers are pinned; firmware,
    cables and hosts are not."""
    tracking_words: tuple[str, ...] = ("mlflow",)
    """A resource with such a name serves experiment tracking."""
    commit_variables: tuple[str, ...] = (
        *("GIT_SHA", "GIT_COMMIT", "GIT_REVISION", "MLFLOW_GIT_COMMIT"),
        "CODE_SHA256",
    )
    """Variables in which a training job names its code; the last one for code without a commit."""
    allowed_accelerators: tuple[str, ...] = (
        *("a10g", "l4", "l40s", "a100-40", "a100-80", "h100", "h200", "b200", "b300"),
        *("nvidia-l4", "nvidia-rtx-pro-6000", "nvidia-tesla-a100", "nvidia-a100-80gb"),
        *("nvidia-h100-80gb", "nvidia-h100-mega-80gb", "nvidia-h200-141gb", "nvidia-b200", "nvidia-gb200"),
    )
    """As the catalog of AWS and as GKE call them. Those with bf16, in which most models are trained today:
    older ones (T4, V100) need loss scaling; any other than those of NVIDIA other programs."""
    needed_endpoints: tuple[str, ...] = ("s3", "ecr.api", "ecr.dkr", "sts", "logs")
    """Services of AWS that the VPC of a private cluster reaches without a NAT gateway. The one of S3 costs
    nothing and carries layers of images and checkpoints; any other costs $7 a month and zone."""
    max_accelerators: int = 64
    """Of all pools at their maximum size: eight machines of eight, what `max_usd_per_hour` pays for."""
    quotas: Mapping[str, float] = field(default_factory=dict)
    """Quotas of the account in vCPUs, by key of the catalog's quotas (`ec2_on_demand_p`). Empty by default,
    because they differ by account; `trainstack preflight` reads them."""
    required_tags: Mapping[str, str] = field(
        default_factory=lambda: {
            "owner": ".+",
            "cost-center": ".+",
            "environment": "dev|development|test|staging|prod|production|live",
            "data-class": "public|internal|confidential|restricted",
            "expires-on": r"\d{4}-\d\d-\d\d|never",
        }
    )
    """Tags or labels of whatever costs money or keeps data, with the form of their values (a regular
    expression, case-insensitive): owner, payer, handling of the data, and end of life."""
    images_by_version: tuple[str, ...] = ()
    """Images that may be named by version, each in full (`REGISTRY/NAME:VERSION`), for images of Google
    without a published digest. Listing one means trusting its registry; empty, every image needs a digest."""
    allowed_regions: tuple[str, ...] = ()
    """Regions for data. Empty: those of the stack's clusters, so that a stack is in one place."""
    approved_registries: tuple[str, ...] = (
        *("*.dkr.ecr.*.amazonaws.com", "public.ecr.aws", "*-docker.pkg.dev", "gcr.io", "*.gcr.io"),
        *("registry.k8s.io", "nvcr.io", "ghcr.io", "quay.io"),
    )
    """Those of the clouds, of Kubernetes and of NVIDIA, and the two where their projects publish. Not Docker
    Hub: it limits the pull rate of nodes, and its names are assigned first come, first served."""
