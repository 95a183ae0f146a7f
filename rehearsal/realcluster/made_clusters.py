"""Give clusters of emulated clouds the address and certificate authority of the real control plane."""

import base64
from pathlib import Path

from rehearsal.core.model import Call, EmulatedCloud, Properties, RefusalError
from rehearsal.core.state import State
from rehearsal.core.wrapper import Wrapper
from rehearsal.kubernetes.clusters import EKS_CLUSTER, GKE_CLUSTER
from rehearsal.realcluster.plane import plane_of


class MadeClusters(Wrapper):
    """A cloud with one real cluster. A home has one control plane, so a second cluster is refused."""

    def __init__(self, inside: EmulatedCloud, state: State, home: Path) -> None:
        super().__init__(inside)
        self._state, self._plane = state, plane_of(state, home)

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`."""
        if call.type not in (EKS_CLUSTER, GKE_CLUSTER) or preview:
            return self.inside.create(call, inputs, preview=preview)
        for token in (EKS_CLUSTER, GKE_CLUSTER):
            for record in self._state.find(type=token):
                raise RefusalError(
                    "OneControlPlane",
                    f"cluster {record.id} uses the only real control plane of this rehearsal.",
                    "Rehearse the other cluster in a home of its own (TRAINSTACK_REHEARSAL_HOME).",
                )
        identifier, outputs = self.inside.create(call, inputs, preview=False)
        access = self._plane.api().access
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
        for record in self._state.find(type=call.type, id=identifier):
            self._state.replace(record, inputs=record.inputs, outputs={**record.outputs, **real})
        return identifier, outputs

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`; also deletes the control plane's data."""
        self.inside.delete(call, id, outputs)
        if call.type in (EKS_CLUSTER, GKE_CLUSTER):
            self._plane.discard()
