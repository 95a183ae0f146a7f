"""Settings of a stack on AWS."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.aws.slinky import SlinkySpec
from infra.stackspec.model import (
    AccountId,
    AddonVersion,
    CertificateArn,
    Cidr,
    CloudModel,
    ExternalId,
    FaultName,
    FilePath,
    HostName,
    HttpsUrl,
    ImageId,
    KeyArn,
    Model,
    NodeImage,
    PolicyArn,
    RoleArn,
    SecretArn,
)
from infra.stackspec.sharing import Sharing

Acu = Annotated[float, Field(ge=0, le=256, multiple_of=0.5)]
"""Aurora capacity units, in steps of 0.5."""


class AuroraSpec(Model):
    """The PostgreSQL database of the tracking server: Aurora Serverless v2."""

    min_acu: Acu
    """Minimum size in capacity units; with 0, the idle database pauses, and the next request waits for it."""

    max_acu: Annotated[float, Field(ge=1, le=256, multiple_of=0.5)]
    """Maximum size in capacity units; one unit is about 2 GiB of memory."""


class RepairRuleSpec(Model):
    """Repair of one kind of fault, which overrides the default of EKS."""

    condition: Literal[
        "AcceleratedHardwareReady", "ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady"
    ]
    """The node condition that the fault sets to false."""

    reason: FaultName
    """Name of the fault in the monitor, such as `NvidiaXID79Error`."""

    after_minutes: Annotated[int, Field(ge=1)]
    """Minutes for which the fault must last."""

    action: Literal["Replace", "Reboot", "NoAction"]
    """Repair of such a node, by EKS; `NoAction`: none."""


class RepairSpec(Model):
    """Automatic repair of GPU nodes: the monitor detects a fault, EKS reboots or replaces the node."""

    at_once: Annotated[int, Field(ge=1)]
    """Maximum nodes of a pool in repair at the same time."""

    stop_above: Annotated[int, Field(ge=1)]
    """With more unhealthy nodes than this in a pool, repair stops: the cause is probably not the nodes."""

    rules: tuple[RepairRuleSpec, ...] = ()
    """Faults that override the default of EKS (GPU faults: after 10 minutes)."""


class OidcSpec(Model):
    """The identity provider for logins; fields as in its discovery document."""

    issuer: HttpsUrl
    """Issuer of the tokens; exactly as in the discovery document."""

    authorization_endpoint: HttpsUrl
    """Login page for browsers."""

    token_endpoint: HttpsUrl
    """Endpoint for tokens; needs public DNS and a certificate of a public authority."""

    user_info_endpoint: HttpsUrl
    """Endpoint for the identity of the user; reached like the token endpoint."""

    client_id: Annotated[str, Field(min_length=1)]
    """Id of the application registered for this load balancer."""

    client_secret_arn: SecretArn
    """Secret of Secrets Manager whose whole value is the application's client secret."""


class LoadBalancerSpec(Model):
    """An internal load balancer in front of the tracking server: HTTPS, with a login."""

    host: HostName
    """Host name; the administrator of its DNS zone points it at the load balancer."""

    certificate_arn: CertificateArn
    """A certificate for that name, in the stack's region and account."""

    allowed_cidrs: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=50)]
    """Ranges that may connect: offices and VPNs connected to the network."""

    oidc: OidcSpec
    """The identity provider of people."""


class AwsPoolSpec(Model):
    """Settings of a pool that are not in `layout.pools`."""

    sharing: Sharing = None
    """Sharing of a GPU by pods; null: none. Only for interactive pools."""


class PcsSpec(Model):
    """AWS Parallel Computing Service, which runs Slurm's controller and accounting."""

    image_id: ImageId
    """Id of the machine image of all nodes, with the service's agent and the version of Slurm. Parameters of
    the service name only the newest image, so the id is written here."""

    size: Literal["SMALL", "MEDIUM", "LARGE"] | None = None
    """Size of the controller; null: the smallest for the nodes of the pools and `layout.max_jobs`. A change
    replaces the cluster."""

    container: FilePath | None = None
    """Squash file of the validation's image on the shared file systems, run by pyxis; null: the validation
    uses `python` of the machine image, which needs PyTorch."""


class AssumeRoleSpec(Model):
    """A role that deploys, where the credentials of the environment are of another account."""

    role_arn: RoleArn
    """The role, in the account of the stack; it trusts the deployer, who may assume it."""

    external_id: ExternalId | None = None
    """The external id that its trust policy demands; it is no secret. null: none."""


class AwsSpec(CloudModel):
    """Settings of AWS."""

    needed_by_clusters: ClassVar = ("admin_arns", "efa_driver", "database", "repair")
    optional_in_clusters: ClassVar = (
        "load_balancer",
        "addon_versions",
        "node_image",
        "disk_key_arn",
        "pools",
    )
    place_field: ClassVar = "account_id"
    payer_field: ClassVar = "account_id"
    login_field: ClassVar = "assume_role"
    person: ClassVar = re.compile("arn:")
    private_registry: ClassVar = re.compile(r"\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/")
    managed_tracking: ClassVar = True

    cloud: Literal["aws"]
    """Cloud of the stack, AWS, set by `trainstack:cloud`."""

    account_id: AccountId
    """Account of the stack; with credentials of another account nothing is changed."""

    assume_role: AssumeRoleSpec | None = None
    """Role that every request to the account is sent as, without a key; null: the credentials of the
    environment are of the account. API servers know the deployer itself: `admin_arns` names it, not this
    role."""

    admin_arns: Annotated[tuple[str, ...], Field(min_length=1)] = ()
    """IAM roles or users with cluster-admin rights, including the deployer. Only with a cluster."""

    permissions_boundary: PolicyArn | None = None
    """Permissions boundary of all roles of the stack, where the organization demands one; it must allow what
    the roles do. null: none."""

    disk_key_arn: KeyArn | None = None
    """Existing KMS key of node disks and of the default storage class, where the organization demands one;
    null: that of AWS for EBS. EC2 Auto Scaling must be able to use it. A change replaces every node."""

    nat: Literal["single", "per_zone"]
    """`single`: one NAT gateway (cheaper; its zone is a single point of failure). `per_zone`: one per
    zone."""

    endpoints: tuple[str, ...]
    """AWS services reached without the internet, by the last part of their service name (`ecr.api`); each
    costs about $7 per month and zone. S3 is always included, at no cost."""

    efa_driver: Literal["device_plugin", "dra"] | None = None
    """Access of pods to EFA devices: device plugin, or Dynamic Resource Allocation. Only with a cluster."""

    database: AuroraSpec | None = None
    """The database of the tracking server. Only with a cluster."""

    load_balancer: LoadBalancerSpec | None = None
    """Browser access to the tracking server; null: by a port-forward (`trainstack open mlflow`)."""

    pools: dict[str, AwsPoolSpec] = Field(default_factory=dict)
    """Further settings of pools, by name; other pools have the defaults."""

    repair: RepairSpec | None = None
    """Automatic repair of GPU nodes. Only with a cluster."""

    pcs: PcsSpec | None = None
    """AWS Parallel Computing Service. Only with the profile large-slurm."""

    slinky: SlinkySpec | None = None
    """Slurm in an EKS cluster of the stack, instead of AWS PCS. Only with the profile large-slurm."""

    addon_versions: dict[str, AddonVersion] = Field(default_factory=dict)
    """Versions of EKS add-ons by name, such as `{vpc-cni: v1.21.1-eksbuild.1}`, to override
    those of the catalog; `trainstack versions` lists newer ones."""

    node_image: NodeImage | None = None
    """Release of EKS's node images, such as `1.35.6-20260714`; null: that of the catalog. A
    change replaces every node."""
