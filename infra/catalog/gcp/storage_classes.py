"""Storage classes of Cloud Storage; all have immediate access.

Source: Cloud Storage documentation, "Storage classes" (minimum storage duration of 30 and 90 days), read
2026-11-25. Lifecycle rules move objects of any age.
"""

from typing import Final

from infra.catalog.storage_classes import StorageClass

STANDARD: Final = StorageClass("STANDARD", billed_days=0, first_day=0, price="gcs_standard")
COOL: Final = StorageClass("NEARLINE", billed_days=30, first_day=1, price="gcs_nearline")
COLD: Final = StorageClass("COLDLINE", billed_days=90, first_day=1, price="gcs_coldline")
