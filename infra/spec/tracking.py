"""Experiment tracking."""

from typing import Annotated

from pydantic import Field

from infra.spec.model import Image, Model

Acu = Annotated[float, Field(ge=0, le=256, multiple_of=0.5)]
"""Aurora capacity units, in steps of 0.5."""


class TrackingSpec(Model):
    """An MLflow server with Aurora Serverless v2 PostgreSQL and the artifact bucket behind it."""

    image: Image
    """Image with MLflow (auth extra), psycopg2 and boto3."""

    replicas: Annotated[int, Field(ge=1, le=10)]
    """Server pods."""

    workers: Annotated[int, Field(ge=1, le=16)]
    """Server processes per pod, each with its own database connections."""

    min_acu: Acu
    """Smallest database size; 0 lets the database pause when idle, and the first request then waits."""

    max_acu: Annotated[float, Field(ge=1, le=256, multiple_of=0.5)]
    """Largest database size."""
