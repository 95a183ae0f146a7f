"""Names of checks, for `--skip`."""

from trainstack.bootstrap.aws.checks import BUCKET, CONTACT, TRUST
from trainstack.cli.preflight import NAMES
from trainstack.preflight import aws, gcp


def test_the_help_has_the_name_of_every_check() -> None:
    found = {BUCKET, CONTACT, TRUST}
    for one in (aws, gcp):
        found |= {*one.CHECKS, *one.JOB_CHECKS, *one.SLURM_CHECKS}
    assert [*NAMES] == sorted(found)
