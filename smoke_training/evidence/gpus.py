"""Records of single GPUs: computation and the driver's counters."""

from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind
from smoke_training.evidence.training import MachineWindow, Rows


@dataclass(frozen=True, kw_only=True)
class GpuState:
    """Health of one GPU as its driver reports it; None where it does not.

    `corrected` and `uncorrected` are ECC errors since the driver was loaded, `remapped` the rows of memory
    replaced after uncorrectable ones. `action` is the recovery that the driver requests, or "none". `link` is
    PCI Express generation and width, `link_most` what GPU and machine could have, `nvlinks` the active ones.
    """

    corrected: int | None = None
    uncorrected: int | None = None
    remapped: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    action: str | None = None
    link: tuple[int, int] | None = None
    link_most: tuple[int, int] | None = None
    nvlinks: int | None = None


@kind("gpus")
class Gpus(Record):
    """One product of two square matrices over and over on all GPUs at once; by rank.

    `seconds` are those of blocks of `products`, [rank][block]; `bits` the sum over the bits of the result
    after each block. `states` were read right after the last one.
    """

    dtype: str
    size: int  # rows of a matrix
    products: int
    seconds: Rows
    bits: tuple[tuple[int, ...], ...]
    uuids: tuple[str, ...]
    windows: tuple[MachineWindow, ...]
    states: tuple[GpuState | None, ...]
