"""The AWS cloud with limits: quotas of the account, and machines that a scenario has made scarce."""

from pathlib import Path

from rehearsal.aws.quotas import COUNTED, INSTANCE, NODES, Account, Planned
from rehearsal.aws.site import DEFAULT_REGION, account_of
from rehearsal.core.model import Call, Cloud, Properties, Record
from rehearsal.core.state import State
from rehearsal.core.wrapper import Wrapper

_SUBNET, _TEMPLATE = "aws:ec2/subnet:Subnet", "aws:ec2/launchTemplate:LaunchTemplate"


class Limited(Wrapper):
    """Refuses what the account may not have, in the service's words."""

    def __init__(self, inside: Cloud, state: State, faults: Path) -> None:
        super().__init__(inside)
        self._state, self._account = state, Account(faults)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.Cloud`; a preview is told by its preflight instead, all at once."""
        if not preview and call.type in (*COUNTED, NODES, INSTANCE):
            self._refuse(call, inputs)
        return self.inside.create(call, inputs, preview=preview)

    def _refuse(self, call: Call, inputs: Properties) -> None:
        region = inputs.get("region") or call.instance.config.get("region") or DEFAULT_REGION
        scope = f"{account_of(call.instance.config)}/{region}"
        wanted = self._with_machine(inputs) if call.type == NODES else inputs
        types = (NODES, INSTANCE) if call.type in (NODES, INSTANCE) else (call.type,)
        rest = [
            Planned(record.type, record.name or record.id, self._with_machine(record.inputs))
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
        """The zones in which machines are asked for."""
        if isinstance(inputs.get("availabilityZone"), str):
            return [inputs["availabilityZone"]]
        subnets = inputs.get("subnetIds") or [inputs.get("subnetId")]
        found = [self._known(one, _SUBNET) for one in subnets]
        return sorted({str(one.outputs.get("availabilityZone")) for one in found if one})

    def _known(self, value: object, token: str) -> Record | None:
        if not isinstance(value, str):
            return None
        return next((one for one in self._state.issued(value) if one.type == token), None)
