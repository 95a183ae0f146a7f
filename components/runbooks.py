"""Runbook pages of alerts, and the alerts that clouds raise themselves."""

from typing import Final

ROOT: Final = "docs/runbooks"
"""Below the root of this repository: every alert has a page there, in the folder of its layer."""
LUSTRE: Final = "LustreFillingUp"
BUCKET: Final = "CheckpointBucketAboveForecast"
HOMES: Final = "HomesFillingUp"
OF_CLOUDS: Final = (LUSTRE, BUCKET, HOMES)
"""Alerts about storage without a metric in the cluster, or without monitoring in it."""


def page(layer: str, alert: str) -> str:
    """The path of an alert's page."""
    return f"{ROOT}/{layer}/{alert}.md"


def page_of_storage(alert: str) -> str:
    """The path of the page of one of `OF_CLOUDS`."""
    return page("storage", alert)
