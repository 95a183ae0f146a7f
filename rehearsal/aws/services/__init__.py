"""What rows cannot say, service by service: `HOOKS` maps a type (without `aws:`) to its functions."""

from collections.abc import Mapping

from rehearsal.aws.services import (
    addresses,
    compute,
    eks,
    files,
    identity,
    nodes,
    rds,
    security,
    vpc,
)
from rehearsal.aws.site import Hooks

HOOKS: Mapping[str, Hooks] = {
    **addresses.HOOKS,
    **compute.HOOKS,
    **eks.HOOKS,
    **files.HOOKS,
    **identity.HOOKS,
    **nodes.HOOKS,
    **rds.HOOKS,
    **security.HOOKS,
    **vpc.HOOKS,
}
