"""Further users of the key of the buckets: disks of notebooks, and jobs."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.agents import COMPUTE, agent
from components.gcp.propagation import settled
from components.gcp.tracking.agents import may_use_key
from components.ordering import after

_USES = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


class GcpKeyUsersArgs(TypedDict):
    """A key, and its further users."""

    key_id: pulumi.Input[str]
    """`projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>`."""
    project: str
    """Id of the project."""
    project_number: pulumi.Input[str]
    """Number of that project."""
    services: Sequence[str]
    """APIs whose service agents use the key, such as `aiplatform.googleapis.com`."""


class GcpKeyUsers(Component):
    """Permissions to use one key: of services, and of Compute Engine for disks.

    *Untested in a real project.*
    """

    key_id: pulumi.Output[str]
    """The key; its users come after these permissions."""

    def __init__(self, name: str, args: GcpKeyUsersArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        rights: list[pulumi.Resource] = [
            may_use_key(self, f"{name}-{api.partition('.')[0]}", api, args["key_id"])
            for api in args["services"]
        ]
        project, number = args["project"], args["project_number"]
        disks = agent(self, f"{name}-disks-agent", COMPUTE, project=project, number=number)
        rights.append(
            gcp.kms.CryptoKeyIAMMember(
                f"{name}-disks-use",
                crypto_key_id=args["key_id"],
                role=_USES,
                member=disks,
                opts=settled(self.child(), disks),
            )
        )
        self.key_id = after(pulumi.Output.from_input(args["key_id"]), rights)
        self.register_declared()
