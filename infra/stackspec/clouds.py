"""What only one cloud asks: one model per cloud."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import (
    AccountId,
    AddonVersion,
    BillingAccount,
    CertificateArn,
    Cidr,
    DatabaseTier,
    DiskImage,
    FaultName,
    HostName,
    HttpsUrl,
    Model,
    NodeImage,
    Principal,
    ProjectId,
    SecretArn,
    TimeOfDay,
    ZoneName,
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


class AwsSpec(Model):
    """What AWS asks besides."""

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


class MaintenanceSpec(Model):
    """When Google may upgrade the control plane, and what it leaves alone."""

    days: Annotated[tuple[Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"], ...], Field(min_length=1)]
    """Days of the week on which upgrades may begin."""

    start: TimeOfDay
    """When they may begin, in UTC, such as `02:00`."""

    hours: Annotated[int, Field(ge=4, le=24)]
    """For how long, in hours; GKE needs 48 hours in 32 days."""

    hold_nodes: bool
    """Whether nodes keep their version, and the control plane its minor version, until that version's support
    ends: an upgrade drains every node of a pool."""


class CloudSqlSpec(Model):
    """The PostgreSQL database of the tracking server: Cloud SQL."""

    tier: DatabaseTier
    """Machine tier, `db-custom-<CPUs>-<MiB>`; without a cluster also `db-f1-micro` or `db-g1-small`, whose
    shared cores have no service level."""

    availability: Literal["zonal", "regional"]
    """`regional`: a standby in another zone takes over, for twice the price."""

    disk_gib: Annotated[int, Field(ge=10, le=65536)]
    """First size of the disk in GiB; it grows by itself and never shrinks."""


class TimeSharingSpec(Model):
    """Several pods take turns on a GPU; they share its memory and see each other's faults."""

    kind: Literal["time_sharing"]
    """`time_sharing`"""

    clients: Annotated[int, Field(ge=2, le=48)]
    """Pods per GPU."""


class MigSpec(Model):
    """GPUs are cut into partitions of their own memory and cores (Multi-Instance GPU)."""

    kind: Literal["mig"]
    """`mig`"""

    partition: str
    """Size of a partition, as NVIDIA calls it: `1g.5gb` of an A100, `1g.10gb` of an H100."""


class GcpPoolSpec(Model):
    """What only GKE asks about a pool."""

    driver: Literal["default", "latest"] = "default"
    """Which NVIDIA driver GKE installs: its default for the version of the nodes, or the latest."""

    sharing: Annotated[TimeSharingSpec | MigSpec | None, Field(discriminator="kind")] = None
    """How pods share a GPU; null: each has its own. Only for interactive pools."""

    local_ssds: Annotated[int, Field(ge=0, le=32)] | None = None
    """Local SSDs of 375 GiB for the ephemeral storage of pods; null: as many as the type always has. Their
    content goes with the node."""

    image_cache: DiskImage | None = None
    """A disk image that holds container images, as a secondary boot disk: `projects/<project>/global/images/
    <name>`; null: images are streamed."""

    compact: bool = False
    """Whether nodes are placed close together by a compact placement policy: for types without an RDMA
    network. It excludes flex-start."""


class GcpSpec(Model):
    """What Google Cloud asks besides."""

    cloud: Literal["gcp"]
    """Set by `trainstack:cloud`."""

    project: ProjectId
    """Id of the project; nothing is made in any other one."""

    billing_account: BillingAccount
    """The account that pays for the project; its budget lives there."""

    admins: Annotated[tuple[Principal, ...], Field(min_length=1)] = ()
    """Who administers the cluster, the one that deploys included: `user:`, `group:` or `serviceAccount:` and
    an e-mail address. Only of a cluster."""

    channel: Literal["rapid", "regular", "stable", "extended"] | None = None
    """Release channel of the cluster; the version is at least `layout.kubernetes_version`. Only of a
    cluster."""

    endpoint: Literal["dns", "ip"] | None = None
    """How the API server is reached. `dns`: by a name, from anywhere, by whom IAM admits; no address of its
    own. `ip`: by a public address, from the ranges of `layout.api_access` alone. Only of a cluster."""

    maintenance: MaintenanceSpec | None = None
    """When the cluster is upgraded. Only of a cluster."""

    pods_per_node: Annotated[int, Field(ge=8, le=256)] | None = None
    """Most pods of a node; each node takes a range of twice as many addresses, so fewer leave room for more
    nodes in `layout.network_cidr`. Only of a cluster."""

    accelerator_networks: Literal["managed", "classic"] | None = None
    """Who makes the networks of the NICs beside GPUs where GKE can do it (A3 Ultra, A4, A4X). `managed`: GKE,
    with DRANET; pods claim devices. `classic`: this stack, with Network objects that pods name. Other types
    are always classic. Only of a cluster."""

    pools: dict[str, GcpPoolSpec] = Field(default_factory=dict)
    """What only GKE asks about a pool, by its name; a pool that is not named has the defaults."""

    dataset_cache: bool = False
    """Whether an Anywhere Cache of the datasets lies in the zone of each pool: faster, and billed by size."""

    rapid_checkpoints: ZoneName | None = None
    """The zone of a Rapid bucket beside the checkpoints, for jobs that ask for it; null: there is none."""

    checkpoint_addon: bool = False
    """Whether GKE's multi-tier checkpointing is installed: checkpoints in memory of nodes, copied to a
    bucket."""

    readiness_addon: bool = False
    """Whether GKE's Node Readiness Controller is installed. It keeps pods off nodes until conditions hold,
    which NodeReadinessRules of yours name, such as that of a health check."""

    database: CloudSqlSpec
    """The database of the tracking server."""


class ExistingSpec(Model):
    """A Kubernetes cluster that is already there, on premises or elsewhere."""

    cloud: Literal["existing"]
    """Set by `trainstack:cloud`."""

    kubeconfig_context: str
    """Context of the kubeconfig that reaches the cluster."""

    store_uri: str
    """Object store for checkpoints and artifacts, such as `s3://bucket/prefix`."""

    node_labels: dict[str, dict[str, str]]
    """Labels of the nodes of each pool, by name of the pool."""


CloudSpec = Annotated[AwsSpec | GcpSpec | ExistingSpec, Field(discriminator="cloud")]
"""What the cloud asks besides, by cloud."""
