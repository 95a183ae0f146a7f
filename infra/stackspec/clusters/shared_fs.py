"""The parallel file system of a cluster."""

from typing import Annotated

from pydantic import Field

from infra.stackspec.model import Model


class SharedFileSystemSpec(Model):
    """A parallel file system (Lustre) beside the GPUs, linked to the checkpoint and dataset buckets."""

    capacity_gib: Annotated[int, Field(ge=1)]
    """Capacity in GiB; on AWS 1200 or a multiple of 2400, with RDMA the step depends on the
    throughput; on Google Cloud the step depends on the throughput."""

    throughput_mb_s_per_tib: Annotated[int, Field(ge=1)]
    """Throughput per TiB in MB/s: 125, 250, 500 or 1000."""

    zone: str
    """Zone of the file system: that of the training pool, because cross-zone traffic is slow and billed."""

    rdma: bool = False
    """Whether clients may use RDMA (EFA on AWS); set at creation, and the throughput is fixed then."""
