"""Settings of a stack on Google Cloud."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.model import (
    BillingAccount,
    CloudModel,
    Currency,
    DatabaseTier,
    DiskImage,
    FilePath,
    Model,
    OAuthClient,
    Principal,
    ProjectId,
    SecretName,
    ServiceAccount,
    TimeOfDay,
    ZoneName,
)
from infra.stackspec.sharing import Sharing

# The minimum of regional Filestore.
_HOMES_GIB = 100


class BillingCurrencySpec(Model):
    """The currency of a billing account, in which its budgets are."""

    code: Currency
    """Its code, such as `EUR`. It depends on the country of the account, and does not change."""

    per_usd: Annotated[float, Field(gt=0)]
    """Amount of it for one US dollar, such as 0.92. Preflight prints the rate of Google's price list."""


class MaintenanceSpec(Model):
    """Maintenance windows of the cluster."""

    days: Annotated[tuple[Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"], ...], Field(min_length=1)]
    """Days of the week on which upgrades may begin."""

    start: TimeOfDay
    """Start of the window, in UTC, such as `02:00`."""

    hours: Annotated[int, Field(ge=4, le=24)]
    """Length in hours; GKE needs 48 hours in 32 days."""

    hold_nodes: bool
    """Whether nodes keep their version, and the control plane its minor version, until end of support: an
    upgrade drains every node of a pool."""


class CloudSqlSpec(Model):
    """The PostgreSQL database of the tracking server: Cloud SQL."""

    tier: DatabaseTier
    """Machine tier, `db-custom-<CPUs>-<MiB>`; without a cluster also `db-f1-micro` or `db-g1-small`, whose
    shared cores have no service level."""

    availability: Literal["zonal", "regional"]
    """`regional`: failover to a standby in another zone, at twice the price."""

    disk_gib: Annotated[int, Field(ge=10, le=65536)]
    """Initial size of the disk in GiB; it grows automatically and never shrinks."""


class OAuthClientSpec(Model):
    """An OAuth client of the project, made in the console (docs/how-to/jobs.md)."""

    client_id: OAuthClient
    """Id of the client."""

    client_secret: SecretName
    """Secret in Secret Manager whose newest version is the client's secret. The deployer needs
    `secretmanager.versions.access` on it."""


class GcpPoolSpec(Model):
    """Settings of a pool that only GKE has."""

    driver: Literal["default", "latest"] = "default"
    """NVIDIA driver: GKE's default for the version of the nodes, or the latest."""

    sharing: Sharing = None
    """Sharing of a GPU by pods; null: none. Only for interactive pools."""

    local_ssds: Annotated[int, Field(ge=0, le=32)] | None = None
    """Local SSDs of 375 GiB for the ephemeral storage of pods; null: the fixed number of the type. Their
    content is lost with the node."""

    image_cache: DiskImage | None = None
    """A disk image with container images, as a secondary boot disk: `projects/<project>/global/images/
    <name>`; null: images are streamed."""

    compact: bool = False
    """Whether a compact placement policy places nodes close together: for types without an RDMA network. Not
    with flex-start."""


class DirectorSpec(Model):
    """Cluster Director, which runs Slurm's controller and accounting."""

    cluster_id: Annotated[str, Field(min_length=1)]
    """Id of the cluster: at most ten lower-case letters and digits. A change replaces the cluster."""

    container: FilePath | None = None
    """Squash file of the validation's image on the shared file systems, run by pyxis; null: the validation
    uses `python` of the service's machine image, which needs PyTorch."""


class GcpSpec(CloudModel):
    """Settings of Google Cloud."""

    needed_by_clusters: ClassVar = (
        "admins",
        "channel",
        "endpoint",
        "maintenance",
        "pods_per_node",
        "accelerator_networks",
    )
    optional_in_clusters: ClassVar = (
        "pools",
        "dataset_cache",
        "dataset_claims",
        "rapid_checkpoints",
        "checkpoint_addon",
        "readiness_addon",
        "homes_gib",
        "first_rdma_zone",
    )

    never_in_clusters: ClassVar = ("login",)
    place_field: ClassVar = "project"
    payer_field: ClassVar = "billing_account"
    person: ClassVar = re.compile("(?!arn:)")
    private_registry: ClassVar = re.compile(r"([a-z0-9-]+-docker\.pkg\.dev|([a-z]+\.)?gcr\.io)/")
    slurm_limits: ClassVar = False

    cloud: Literal["gcp"]
    """Cloud of the stack, Google Cloud, set by `trainstack:cloud`."""

    project: ProjectId
    """Id of the project; no resource is created in another one."""

    impersonate: ServiceAccount | None = None
    """Service account that every request to the project is sent as, without a key; the deployer may create
    its tokens (`roles/iam.serviceAccountTokenCreator`). null: the deployer itself. API servers know the
    deployer: `admins` names it, not this account."""

    billing_account: BillingAccount
    """The billing account of the project, which has its budget."""

    billing_currency: BillingCurrencySpec | None = None
    """Currency of the billing account where it is not US dollars. Amounts in this file stay in dollars; the
    budgets in Cloud Billing are converted."""

    admins: Annotated[tuple[Principal, ...], Field(min_length=1)] = ()
    """Administrators of the cluster, including the deployer: `user:`, `group:` or `serviceAccount:` and an
    e-mail address. Only with a cluster."""

    channel: Literal["rapid", "regular", "stable", "extended"] | None = None
    """Release channel of the cluster; the version is at least `layout.kubernetes_version`. Only with a
    cluster."""

    endpoint: Literal["dns", "ip"] | None = None
    """Endpoint of the API server. `dns`: a DNS name, from anywhere, with access by IAM; no IP address. `ip`:
    a public address, only from the ranges of `layout.api_access`. Only with a cluster."""

    maintenance: MaintenanceSpec | None = None
    """Maintenance windows. Only with a cluster."""

    pods_per_node: Annotated[int, Field(ge=8, le=256)] | None = None
    """Maximum pods per node; each node takes a range of twice as many addresses, so a lower value allows more
    nodes in `layout.network_cidr`. Only with a cluster."""

    accelerator_networks: Literal["managed", "classic"] | None = None
    """Networks of the NICs beside GPUs, where GKE supports both (A3 Ultra, A4). `managed`: by GKE, with
    DRANET; pods claim devices. `classic`: by this stack, with Network objects that pods name. Other types are
    always classic. Only with a cluster."""

    first_rdma_zone: ZoneName | None = None
    """Zone in which the Network objects of RDMA have names without the zone's letter (`rdma-0`); keep it when
    its pools go. Null: the only zone. Required with `classic` RDMA in several zones."""

    pools: dict[str, GcpPoolSpec] = Field(default_factory=dict)
    """GKE settings of pools, by name; other pools have the defaults."""

    dataset_cache: bool = False
    """Whether the zone of each pool has an Anywhere Cache of the datasets: faster, and billed by size."""

    dataset_claims: bool = False
    """Whether pods mount datasets as files without Lustre: claims `datasets` and `shared-datasets`, by Cloud
    Storage FUSE. Each team then has a bucket of its own for datasets, and all teams a shared one."""

    rapid_checkpoints: ZoneName | None = None
    """Zone of an additional Rapid bucket for checkpoints, for jobs that use it; null: none."""

    checkpoint_addon: bool = False
    """Whether GKE's multi-tier checkpointing is installed: checkpoints in node memory, copied to a bucket."""

    readiness_addon: bool = False
    """Whether GKE's Node Readiness Controller is installed. It keeps pods off nodes until the
    conditions of your NodeReadinessRules are true, such as that of a health check."""

    homes_gib: Annotated[int, Field(ge=100)] | None = None
    """Size of the home directories (`data.homes`) in GiB, on regional Filestore, which can grow and shrink;
    null: 100, the minimum, for new ones, and existing ones keep their size. A project without access to small
    instances needs 1024 or more."""

    login: OAuthClientSpec | None = None
    """OAuth client for the login to MLflow, for users of several organizations or of none; null: that of
    Google, for users of the project's organization. Only without a cluster."""

    database: CloudSqlSpec | None = None
    """The database of the tracking server. Not with the profile large-slurm."""

    director: DirectorSpec | None = None
    """Cluster Director. Only with the profile large-slurm."""

    @property
    def homes_size_gib(self) -> int:
        """Size of the home directories when they are made, which prices and quotas count."""
        return self.homes_gib or _HOMES_GIB
