"""Storage classes of S3 with immediate access.

Sources, read 2026-11-25: Amazon S3 API Reference, `Transition` (to STANDARD_IA "greater than 30" days; the
user guide says at least 30); user guide, "Constraints and considerations for transitions" (30 days between
Standard-IA and a Glacier class) and "Comparing the Amazon S3 storage classes" (billed for at least 30 and 90
days).
"""

from typing import Final

from infra.catalog.storage_classes import StorageClass

STANDARD: Final = StorageClass("STANDARD", billed_days=0, first_day=0, price="s3_standard")
COOL: Final = StorageClass("STANDARD_IA", billed_days=30, first_day=31, price="s3_standard_ia")
"""Two pages differ by a day; this is the stricter value."""
COLD: Final = StorageClass("GLACIER_IR", billed_days=90, first_day=1, price="s3_glacier_ir")
