"""Give clusters of emulated clouds the address and certificate authority of their real control planes."""

import base64
from pathlib import Path

from rehearsal.core.model import Call, EmulatedCloud, Properties, Record
from rehearsal.core.state import State
from rehearsal.core.wrapper import Wrapper
from rehearsal.kubernetes.clusters import EKS_CLUSTER, GKE_CLUSTER
from rehearsal.realcluster.planes import planes_of


class MadeClusters(Wrapper):
    """A cloud whose clusters are real."""

    def __init__(self, inside: EmulatedCloud, state: State, home: Path) -> None:
        super().__init__(inside)
        self._state, self._planes = state, planes_of(state, home)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`."""
        if call.type not in (EKS_CLUSTER, GKE_CLUSTER) or preview:
            return self.inside.create(call, inputs, preview=preview)
        identifier, outputs = self.inside.create(call, inputs, preview=False)
        made = self._record(call, identifier)
        assert made is not None
        access = self._planes.of(made).api().access
        authority = base64.b64encode(access.authority.read_bytes()).decode()
        if call.type == EKS_CLUSTER:
            real = {"endpoint": access.server, "certificateAuthority": {"data": authority}}
        else:
            keys = {**(outputs.get("masterAuth") or {}), "clusterCaCertificate": authority}
            address = access.server.removeprefix("https://")
            control = outputs.get("controlPlaneEndpointsConfig") or {}
            named = {**(control.get("dnsEndpointConfig") or {}), "endpoint": address}
            real = {
                "endpoint": address,
                "masterAuth": keys,
                "controlPlaneEndpointsConfig": {**control, "dnsEndpointConfig": named},
            }
        outputs = {**outputs, **real}
        self._state.replace(made, inputs=made.inputs, outputs={**made.outputs, **real})
        return identifier, outputs

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`; also deletes the control plane's data."""
        gone = [self._record(call, id)] if call.type in (EKS_CLUSTER, GKE_CLUSTER) else []
        self.inside.delete(call, id, outputs)
        for record in filter(None, gone):
            self._planes.discard(record)

    def _record(self, call: Call, id: str) -> Record | None:
        """The cluster of a request: its id may be that of one in another region."""
        found = self._state.find(type=call.type, id=id)
        return next((one for one in found if one.urn == call.urn), None)
