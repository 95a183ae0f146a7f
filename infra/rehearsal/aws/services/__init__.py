"""What rows cannot say, service by service: `HOOKS` maps a type (without `aws:`) to its functions."""

from collections.abc import Mapping

from infra.rehearsal.aws.services import (
    addresses,
    billing,
    compute,
    eks,
    files,
    identity,
    nodes,
    rds,
    s3,
    security,
    vpc,
)
from infra.rehearsal.aws.site import Hooks

HOOKS: Mapping[str, Hooks] = {
    **addresses.HOOKS,
    **billing.HOOKS,
    **compute.HOOKS,
    **eks.HOOKS,
    **files.HOOKS,
    **identity.HOOKS,
    **nodes.HOOKS,
    **rds.HOOKS,
    **s3.HOOKS,
    **security.HOOKS,
    **vpc.HOOKS,
}
