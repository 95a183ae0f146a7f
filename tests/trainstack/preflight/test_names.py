"""Names of checks, for `--skip`."""

from trainstack.bootstrap.aws.checks import BUCKET, CONTACT, TRUST
from trainstack.cli.preflight import NAMES
from trainstack.preflight import aws, gcp


def test_the_help_has_the_name_of_every_check() -> None:
    found = {*aws.CHECKS, *aws.JOB_CHECKS, *gcp.CHECKS, *gcp.JOB_CHECKS, BUCKET, CONTACT, TRUST}
    assert [*NAMES] == sorted(found)
