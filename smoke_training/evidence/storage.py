"""Records of storage and of the data loader."""

from smoke_training.evidence.registry import Record, kind


@kind("storage")
class StorageTimes(Record):
    """One storage target. Rows are nodes, in the order of `nodes`; columns are repetitions, in seconds.

    A write is `write_bytes` over a block written before, fsync included; a read is `read_bytes` after their
    pages were dropped from the node's cache. `stream_mb_s`, by node, is one long write with one fsync at its
    end: what a checkpoint gets, where a short write waits for the way there and back. `*_queue` is the part
    of each repetition in which the thread waited for a CPU; None where the kernel does not report it.
    """

    name: str
    path: str
    nodes: tuple[int, ...]
    write_bytes: int
    read_bytes: int
    write: tuple[tuple[float, ...], ...]
    write_queue: tuple[tuple[float, ...], ...] | None
    first_write_mb_s: tuple[float, ...]  # blocks that never held data: file systems may have to find them
    read: tuple[tuple[float, ...], ...]
    read_queue: tuple[tuple[float, ...], ...] | None
    resident_share: tuple[float | None, ...]  # of the pages still cached when the reads began, 0 .. 1
    open: tuple[tuple[float, ...], ...]  # seconds to open a file that exists
    stream_mb_s: tuple[float, ...] = ()


@kind("storage_error")
class StorageError(Record):
    """An operation on storage that the operating system refused."""

    phase: str
    name: str  # of the storage target
    path: str
    rank: int
    node: int
    operation: str  # write | read | open
    errno: str  # symbolic: ENOSPC, EACCES, ...
    message: str
    bytes_wanted: int | None
    bytes_free: int | None
    left_behind: tuple[str, ...] = ()  # temporary files that could not be removed
    previous_complete: bool | None = None  # of the checkpoint before; None where there was none


@kind("loader")
class LoaderTimes(Record):
    """A DataLoader over real files feeding an emulated accelerator. Rows are ranks, columns batches."""

    name: str
    path: str
    nodes: tuple[int, ...]  # node of every rank
    workers: int
    batch_samples: int
    sample_bytes: int
    source: str  # of the emulated compute time
    compute: tuple[tuple[float, ...], ...]  # seconds that the emulated accelerator computed
    stall: tuple[tuple[float, ...], ...]  # seconds that it waited for the next batch
    stall_queue: tuple[tuple[float, ...], ...] | None  # of which this rank's processes waited for a CPU
    read_seconds: tuple[float, ...]  # per rank: total of its workers inside open, read and close
    resident_share: tuple[float | None, ...]  # of the data set still cached when the reading began
