"""The managed training service of a deployed stack, real or emulated."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from infra.jobs.service_part import RunService
from infra.outputs.jobs import JobOutputs
from rehearsal import isolation
from rehearsal.client import Rehearsal
from trainstack.cli.clouds.choice import services_of


@contextmanager
def job_service(outputs: JobOutputs, rehearsal: Rehearsal | None) -> Iterator[RunService]:
    """The service of a stack's jobs, within the block. Raises UserError without a login."""
    services = services_of(outputs.cloud)
    if rehearsal is None:
        yield services.job_service(outputs)
        return
    with rehearsal.serving() as environment, environment_of(environment):
        yield services.job_service(outputs)


@contextmanager
def environment_of(variables: Mapping[str, str]) -> Iterator[None]:
    """Replace the environment within the block: SDKs use emulated services and have no real credentials."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({**isolation.without_credentials(before), **variables})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
