"""Runbook pages of alerts, and the alerts that clouds raise themselves."""

from typing import Final

ROOT: Final = "docs/runbooks"
"""Below the root of this repository: every alert has a page there, in the folder of its layer."""
LUSTRE: Final = "LustreFillingUp"
BUCKET: Final = "CheckpointBucketAboveForecast"
HOMES: Final = "HomesFillingUp"
OF_CLOUDS: Final = (LUSTRE, BUCKET, HOMES)
"""Alerts about storage without a metric in the cluster, or without monitoring in it."""


def page(layer: str, alert: str, root: str = ROOT) -> str:
    """The path of an alert's page, or its address where `root` is one of the folder."""
    return f"{root.rstrip('/')}/{layer}/{alert}.md"


def page_of_storage(alert: str, root: str = ROOT) -> str:
    """The page of one of `OF_CLOUDS`."""
    return page("storage", alert, root)
