"""Where data, checkpoints, artifacts and homes live."""

from typing import Annotated

from pydantic import Field

from infra.spec.model import Model

Days = Annotated[int, Field(ge=1, le=3650)]


class LustreSpec(Model):
    """FSx for Lustre, PERSISTENT_2 on SSD, linked to the checkpoint and dataset buckets."""

    capacity_gib: int
    """Capacity in GiB: 1200, or a multiple of 2400; with EFA a multiple that depends on the throughput."""

    throughput_mb_s_per_tib: int
    """Throughput per TiB in MB/s: 125, 250, 500 or 1000."""

    zone: str
    """Zone of the file system: that of the training pool, because cross-zone traffic is slow and billed."""

    efa: bool = False
    """Whether clients may use EFA; decided at creation, freezes the throughput afterwards."""


class StorageSpec(Model):
    """Buckets and file systems (R18, R19)."""

    checkpoint_retention_days: Days
    """After how many days a checkpoint object is deleted."""

    noncurrent_days: Days
    """After how many days an overwritten or deleted version is really gone."""

    lustre: LustreSpec | None
    """The fast file system for data and checkpoints; null: none, training reads from the object store."""

    homes: bool
    """Whether there is an EFS file system for home directories and code."""

    protect: bool
    """Whether buckets that hold objects, databases and the cluster refuse to be deleted."""
