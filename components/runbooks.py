"""Pages that say what an alert means and what to do first, and the alerts that clouds raise by themselves."""

from typing import Final

ROOT: Final = "docs/runbooks"
"""Below the root of this repository: every alert has a page there, in the folder of its layer."""
LUSTRE: Final = "LustreFillingUp"
BUCKET: Final = "CheckpointBucketAboveForecast"
HOMES: Final = "HomesFillingUp"
OF_CLOUDS: Final = (LUSTRE, BUCKET, HOMES)
"""Alerts about storage of which the cluster has no metric, or none while nothing in it watches."""


def page(layer: str, alert: str) -> str:
    """The path of an alert's page."""
    return f"{ROOT}/{layer}/{alert}.md"


def page_of_storage(alert: str) -> str:
    """The path of the page of one of `OF_CLOUDS`."""
    return page("storage", alert)
