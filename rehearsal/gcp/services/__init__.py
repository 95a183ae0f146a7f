"""What rows cannot say, service by service: `HOOKS` maps a type (without `gcp:`) to its functions."""

from collections.abc import Mapping

from rehearsal.gcp.services import compute, data, gke, identity
from rehearsal.gcp.site import Hooks

HOOKS: Mapping[str, Hooks] = {**compute.HOOKS, **data.HOOKS, **gke.HOOKS, **identity.HOOKS}
