"""The services of a rehearsal, for what is shown by jobs that really run."""

from tests.rehearsal.jobs.aws.conftest import account

__all__ = ["account"]
