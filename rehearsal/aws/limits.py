"""Limits of the emulated AWS: quotas of the account, and scarce machines of a scenario.

Machines are scarce only by the rows of a scenario: then spot and on-demand requests can fail, or use another
zone, type or market.
"""

import importlib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rehearsal.aws.package import no_capacity
from rehearsal.aws.site import DEFAULT_REGION, account_of
from rehearsal.core.faults import Faults, read
from rehearsal.core.model import Call, EmulatedCloud, Properties, Record, RefusalError
from rehearsal.core.state import State
from rehearsal.core.wrapper import Wrapper

if TYPE_CHECKING:
    from infra.catalog.aws.quotas import PlannedResource, Shortfall

_NODES, _INSTANCE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/instance:Instance"
# Types with a quota on their number per region (`infra.catalog.aws.quotas.COUNTED`).
_COUNTED = frozenset(
    {
        "aws:ec2/vpc:Vpc",
        "aws:ec2/internetGateway:InternetGateway",
        "aws:ec2/eip:Eip",
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:eks/cluster:Cluster",
        "aws:efs/fileSystem:FileSystem",
        "aws:rds/cluster:Cluster",
        "aws:rds/clusterInstance:ClusterInstance",
        "aws:lb/loadBalancer:LoadBalancer",
        "aws:sagemaker/domain:Domain",
        "aws:sagemaker/userProfile:UserProfile",
    }
)
_SUBNET, _TEMPLATE = "aws:ec2/subnet:Subnet", "aws:ec2/launchTemplate:LaunchTemplate"


class Limited(Wrapper):
    """Refuses creates beyond the limits of the account, with the service's messages."""

    def __init__(self, inside: EmulatedCloud, state: State, faults: Path) -> None:
        super().__init__(inside)
        self._state, self._account = state, AccountLimits(faults)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`; for a preview, the preflight reports every shortfall at once."""
        if not preview and call.type in (*_COUNTED, _NODES, _INSTANCE):
            self._refuse(call, inputs)
        return self.inside.create(call, inputs, preview=preview)

    def _refuse(self, call: Call, inputs: Properties) -> None:
        quotas = _quotas()
        region = inputs.get("region") or call.instance.config.get("region") or DEFAULT_REGION
        scope = f"{account_of(call.instance.config)}/{region}"
        wanted = self._with_machine(inputs) if call.type == _NODES else inputs
        types = (_NODES, _INSTANCE) if call.type in (_NODES, _INSTANCE) else (call.type,)
        rest = [
            quotas.PlannedResource(record.type, record.name or record.id, self._with_machine(record.inputs))
            for token in types
            for record in self._state.find(package="aws", type=token, scope=scope)
        ]
        self._account.refuse(call.type, call.name, wanted, self._zones(wanted), rest)

    def _with_machine(self, inputs: Properties) -> Properties:
        """The inputs of a node group with the machine type that its launch template names."""
        given = inputs.get("launchTemplate")
        if inputs.get("instanceTypes") or not isinstance(given, dict):
            return inputs
        template = self._known(given.get("id") or given.get("name"), _TEMPLATE)
        machine = template.inputs.get("instanceType") if template else None
        return {**inputs, "instanceTypes": [machine]} if machine else inputs

    def _zones(self, inputs: Properties) -> list[str]:
        if isinstance(inputs.get("availabilityZone"), str):
            return [inputs["availabilityZone"]]
        subnets = inputs.get("subnetIds") or [inputs.get("subnetId")]
        found = [self._known(one, _SUBNET) for one in subnets]
        return sorted({str(one.outputs.get("availabilityZone")) for one in found if one})

    def _known(self, value: object, token: str) -> Record | None:
        if not isinstance(value, str):
            return None
        return next((one for one in self._state.issued(value) if one.type == token), None)


class AccountLimits:
    """Quotas and machines left in zones, from a scenario (`faults.json`)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def refuse(
        self, token: str, name: str, inputs: Properties, zones: list[str], rest: "list[PlannedResource]"
    ) -> None:
        """Raise RefusalError where the service would; `rest` are the resources of the region."""
        quotas = _quotas()
        faults = read(self._path)
        me = quotas.PlannedResource(token, name, inputs)
        mine = dict(quotas.demands(token, inputs))
        if mine:
            for short in quotas.shortfalls([*rest, me], faults.quotas):
                if short.key in mine:
                    raise _exceeded(short, mine[short.key])
        for machine, market, count in quotas.machines(token, inputs) if faults.capacity else ():
            types = inputs.get("instanceTypes") or [machine]
            if not any(_left(faults, one, market, zones) >= count for one in types):
                zone = zones[0] if len(zones) == 1 else ", ".join(zones)
                raise no_capacity(token, name, machine, zone, market)


def _left(faults: Faults, machine: str, market: str, zones: list[str]) -> float:
    """Machines that the zones have left together; infinite without a row about one of them."""
    return sum(faults.machines_left(machine, zone, market) for zone in zones or ["*"])


def _exceeded(short: "Shortfall", delta: float) -> RefusalError:
    fix = f"Ask for a higher quota ({short.description}), or for less: {short}."
    code, _, message = short.words(delta).partition(": ")
    return RefusalError(code, message, fix)


def _quotas() -> ModuleType:
    """Quotas of the catalog, loaded on first use: the daemon starts without them."""
    return importlib.import_module("infra.catalog.aws.quotas")
