"""The checkpoint policy of a stack: how large they are, how often they come, which stay and for how long."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Days, Model


class CheckpointSpec(Model):
    """How checkpoints are written, kept and given up (docs/explanation/checkpoints.md)."""

    model_params_b: Annotated[float, Field(gt=0, le=100_000)] | None
    """Parameters of the largest model that people train, in billions, such as 70; null: its storage has no
    price before it is there."""

    weight_bytes: Annotated[float, Field(gt=0, le=16)]
    """Bytes per parameter of the weights in a checkpoint; 2 in bfloat16."""

    optimizer_bytes: Annotated[float, Field(ge=0, le=32)]
    """Bytes per parameter of what the optimizer keeps; 4 for two moments in bfloat16, 12 where they and a
    second copy of the weights are in float32."""

    interval_minutes: Annotated[int, Field(ge=1, le=7 * 1440)] | None
    """Minutes between two checkpoints of a run; null: what Young and Daly say where the size of the model and
    the speed of the file system are known, else 30, and 15 where nodes may be taken back."""

    keep_last: Annotated[int, Field(ge=1, le=10_000)]
    """How many of a run's latest checkpoints stay; the newest one that can be restored is never deleted."""

    keep_every_hours: Annotated[int, Field(ge=1, le=8760)] | None
    """Besides these, the first checkpoint of every so many hours stays; null: no others do."""

    in_bucket: Literal["all", "kept"]
    """What of them is in the bucket. `all`: everything that was written, until it expires, whatever a run
    gives up on the fast file system; `kept`: what a run deletes is deleted there, too, and can be restored
    for `noncurrent_days`. With Managed Lustre only `all`: it copies no deletions."""

    cool_after_days: Days | None
    """After how many days a checkpoint goes to the storage class for what is read once a month, from which it
    is still read at once (S3 Standard-IA, Nearline); null: never."""

    cold_after_days: Days | None
    """The same for what is read once a quarter (S3 Glacier Instant Retrieval, Coldline); null: never."""

    expire_days: Days
    """After how many days the bucket deletes a checkpoint, whatever else is said."""

    @property
    def size_gb(self) -> float | None:
        """GB (1e9 bytes) of one checkpoint: parameters times bytes; None without a model."""
        if self.model_params_b is None:
            return None
        return self.model_params_b * (self.weight_bytes + self.optimizer_bytes)
