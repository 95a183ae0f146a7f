"""The checkpoint policy of a stack: size, interval and retention."""

from typing import Annotated, Literal

from pydantic import Field

from infra.stackspec.model import Days, Model


class CheckpointSpec(Model):
    """Size, interval and retention of checkpoints (docs/explanation/checkpoints.md)."""

    model_params_b: Annotated[float, Field(gt=0, le=100_000)] | None
    """Parameters of the largest trained model, in billions, such as 70; null: the price estimate leaves out
    its checkpoints."""

    weight_bytes: Annotated[float, Field(gt=0, le=16)]
    """Bytes per parameter of the weights in a checkpoint; 2 in bfloat16."""

    optimizer_bytes: Annotated[float, Field(ge=0, le=32)]
    """Bytes per parameter of the optimizer state; 4 for two moments in bfloat16, 12 for float32 moments and a
    float32 copy of the weights."""

    interval_minutes: Annotated[int, Field(ge=1, le=7 * 1440)] | None
    """Minutes between two checkpoints of a run; null: by the Young/Daly formula where the size of the model
    and the speed of the file system are known, else 30, or 15 on interruptible nodes."""

    keep_last: Annotated[int, Field(ge=1, le=10_000)]
    """Number of the latest checkpoints of a run that are kept; the newest restorable one is never deleted."""

    keep_every_hours: Annotated[int, Field(ge=1, le=8760)] | None
    """In addition, the first checkpoint of every period of this many hours is kept; null: no others."""

    in_bucket: Literal["all", "kept"]
    """Checkpoints in the bucket. `all`: every written one until it expires, also after a run deletes it on
    the shared file system; `kept`: deletions by a run also apply to the bucket, and can be undone for
    `noncurrent_days`. With Managed Lustre only `all`: it does not copy deletions."""

    cool_after_days: Days | None
    """Days after which a checkpoint moves to the storage class for monthly access, still with immediate
    access (S3 Standard-IA, Nearline); null: never."""

    cold_after_days: Days | None
    """Days until the storage class for quarterly access (S3 Glacier Instant Retrieval, Coldline); null:
    never."""

    expire_days: Days
    """Days after which the bucket deletes a checkpoint, regardless of other settings."""

    @property
    def size_gb(self) -> float | None:
        """GB (1e9 bytes) of one checkpoint: parameters times bytes; None without a model."""
        if self.model_params_b is None:
            return None
        return self.model_params_b * (self.weight_bytes + self.optimizer_bytes)
