"""Settings of a stack on Google Cloud."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from infra.stackspec.model import (
    BillingAccount,
    CloudModel,
    DatabaseTier,
    DiskImage,
    Model,
    Principal,
    ProjectId,
    TimeOfDay,
    ZoneName,
)


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
        "rapid_checkpoints",
        "checkpoint_addon",
        "readiness_addon",
    )

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
