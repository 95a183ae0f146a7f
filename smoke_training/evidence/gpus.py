"""Records of single GPUs and of a node's devices: computation, counters of errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@kind("devices")
class DeviceChanges(Record):
    """Error counters of one node's devices over the run, `seconds` long: names are "source/device/counter".

    `changed` has the differences that are not 0, `counted` is the number of counters read both times. `lost`
    are devices that were there at the first reading only. `unreadable` says why a source was not read.
    `redirecting` are PCI bridges whose access control sends traffic between devices through the root complex
    (None: not readable), `iommu` is "off", "passthrough" or "translating".
    """

    node: int
    seconds: float
    counted: int
    changed: Mapping[str, int]
    lost: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    redirecting: tuple[str, ...] | None = None
    iommu: str | None = None


@kind("burn")
class Burn(Record):
    """Sustained work of all ranks, `seconds` of `planned_s` so far; the last record has everything.

    A step is two products of matrices with an activation between them, on one of a few inputs. Of a rank's
    `steps` so many are `wrong`: with other bits than its own first one on that input, whose sums are `first`,
    [rank][input]. `rates` are TFLOPS, [rank][window]; `watts` the median power and its limit, by rank.
    `copies` are GB/s by kind and rank (memory, to_device, to_host, to_peer), `files` operations per second by
    kind, in the order of `nodes`. None where something does not exist.
    """

    planned_s: float
    seconds: float
    dtype: str
    size: int
    steps: tuple[int, ...]
    wrong: tuple[int, ...]
    first: tuple[tuple[int, ...], ...]
    rates: Rows
    watts: tuple[tuple[float, float] | None, ...]
    windows: tuple[MachineWindow, ...]
    copies: Mapping[str, tuple[float | None, ...]]
    nodes: tuple[int, ...]
    files: Mapping[str, tuple[float | None, ...]]
