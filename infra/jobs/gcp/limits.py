"""Limits of Vertex AI."""

from typing import Final

from infra.jobs.limits import ServiceLimits

LIMITS: Final = ServiceLimits(
    scheme="gs://",
    keep_warm_minutes=0,
    keep_warm_rule="Vertex AI keeps no machines of a job; a persistent resource would, and is billed all day",
    searches=False,
)
