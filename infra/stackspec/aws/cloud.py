"""Settings of a stack on AWS."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.model import (
    AccountId,
    AddonVersion,
    CertificateArn,
    Cidr,
    CloudModel,
    FaultName,
    HostName,
    HttpsUrl,
    Model,
    NodeImage,
    SecretArn,
)

Acu = Annotated[float, Field(ge=0, le=256, multiple_of=0.5)]
"""Aurora capacity units, in steps of 0.5."""


class AuroraSpec(Model):
    """The PostgreSQL database of the tracking server: Aurora Serverless v2."""

    min_acu: Acu
    """Smallest size in capacity units; 0 lets the database pause when idle: the next request then waits."""

    max_acu: Annotated[float, Field(ge=1, le=256, multiple_of=0.5)]
    """Largest size in capacity units; one unit is about 2 GiB of memory."""


class RepairRuleSpec(Model):
    """What is done about one kind of fault, instead of what EKS does by itself."""

    condition: Literal[
        "AcceleratedHardwareReady", "ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady"
    ]
    """The condition of the node that the fault makes false."""

    reason: FaultName
    """The monitor's name of the fault, such as `NvidiaXID79Error`."""

    after_minutes: Annotated[int, Field(ge=1)]
    """How long the fault must last."""

    action: Literal["Replace", "Reboot", "NoAction"]
    """What is done then."""


class RepairSpec(Model):
    """How far GPU nodes are repaired by themselves: the monitor finds a fault, EKS reboots or replaces."""

    at_once: Annotated[int, Field(ge=1)]
    """Nodes of a pool that are repaired at the same time."""

    stop_above: Annotated[int, Field(ge=1)]
    """With more unhealthy nodes than this in a pool, nothing is repaired: it is hardly the nodes' fault."""

    rules: tuple[RepairRuleSpec, ...] = ()
    """Faults that are treated otherwise than EKS does by itself (GPU faults: after 10 minutes)."""


class OidcSpec(Model):
    """The identity provider at which people log in, as its discovery document calls things."""

    issuer: HttpsUrl
    """Who signs the tokens; exactly as the provider writes it."""

    authorization_endpoint: HttpsUrl
    """Where browsers are sent to log in."""

    token_endpoint: HttpsUrl
    """Where the load balancer gets tokens; in public DNS, with a certificate of a public authority."""

    user_info_endpoint: HttpsUrl
    """Where the load balancer asks who somebody is; reached like the token endpoint."""

    client_id: Annotated[str, Field(min_length=1)]
    """Id of the application that was registered for this load balancer."""

    client_secret_arn: SecretArn
    """The application's secret: a secret of Secrets Manager whose whole value it is."""


class LoadBalancerSpec(Model):
    """An internal load balancer before the tracking server: HTTPS, and a login before any answer."""

    host: HostName
    """The name that people type; whoever keeps its zone points it at the load balancer."""

    certificate_arn: CertificateArn
    """A certificate for that name, in the stack's region and account."""

    allowed_cidrs: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=50)]
    """The ranges that reach it: those of offices and VPNs that are connected to the network."""

    oidc: OidcSpec
    """The identity provider."""


class AwsSpec(CloudModel):
    """Settings of AWS."""

    needed_by_clusters: ClassVar = ("admin_arns", "efa_driver", "database", "repair")
    optional_in_clusters: ClassVar = ("load_balancer", "addon_versions", "node_image")
    managed_tracking: ClassVar = True

    cloud: Literal["aws"]
    """Set by `trainstack:cloud`."""

    account_id: AccountId
    """The account of the stack; with credentials of another one nothing is changed."""

    admin_arns: Annotated[tuple[str, ...], Field(min_length=1)] = ()
    """IAM roles or users with cluster-admin rights, the one that deploys included. Only of a cluster."""

    nat: Literal["single", "per_zone"]
    """`single`: one NAT gateway (cheaper; its zone is a single point of failure). `per_zone`: one in each."""

    endpoints: tuple[str, ...]
    """AWS services reached without the internet, by the last part of their service name (`ecr.api`); each
    costs about $7 a month and zone. S3 always is one of them, and costs nothing."""

    efa_driver: Literal["device_plugin", "dra"] | None = None
    """How EFA devices reach pods: the device plugin, or Dynamic Resource Allocation. Only of a cluster."""

    database: AuroraSpec | None = None
    """The database of the tracking server. Only of a cluster."""

    load_balancer: LoadBalancerSpec | None = None
    """A way to the tracking server for browsers; null: people forward a port (`trainstack open mlflow`)."""

    repair: RepairSpec | None = None
    """How far GPU nodes are repaired by themselves. Only of a cluster."""

    addon_versions: dict[str, AddonVersion] = Field(default_factory=dict)
    """Versions of EKS add-ons by name, such as `{vpc-cni: v1.21.1-eksbuild.1}`, where others are wanted than
    those of the catalog; `trainstack versions` shows what is newer."""

    node_image: NodeImage | None = None
    """Release of EKS's node images, such as `1.35.6-20260714`; null: that of the catalog. Another one
    replaces every node."""
