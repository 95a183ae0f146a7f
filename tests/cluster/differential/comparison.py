"""Compare the emulated Kubernetes with a real API server of the same version.

What is compared. Each sequence of requests goes to the emulation as the engine would send it (Check, then
Create, Update or Delete of the provider) and to the API server as the provider sends it: POST for a creation,
server-side apply for an update after taking over what POST wrote, DELETE (pulumi/pulumi-kubernetes
provider/pkg/await/await.go: Creation, ssaUpdate, fixCSAFieldManagers, Deletion). Two answers agree when

- both accept or both refuse, and
- where the API server names the fields at fault, the emulation names one of them, or one inside of it (an
  expression of a CustomResourceDefinition is about a whole object; the field helps the user), and, when the
  API server's answer is complete (its error 422), no other field. Places in lists are left out, since neither
  a decoding error nor server-side apply has them. Where it names none, the reasons are the same.

What a provider adds. The provider's Check holds an object against the API server's OpenAPI document and
reports nothing of what it finds (provider/pkg/provider/provider.go, Check). An unknown field is
dropped by a creation, with a warning, and refused by the next update. The emulation refuses it at once; so
the API server is asked with `fieldValidation=Strict`, which makes it refuse the same.

What is not compared. Waiting: an object that exists and is not ready is accepted. Objects whose pods
admission keeps out (Pod Security, quotas, limit ranges, priority classes) are accepted by the API server, and
refused by the emulation because their await would never end: there the API server is asked for the pod that
the controller would make, and has to refuse it.

Exceptions, with reason and source, are listed in `exceptions.toml`; at most 2 % of the sequences.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rehearsal.controlplane.api import KubernetesApi
from rehearsal.core.model import Properties
from rehearsal.kubernetes import ambient
from rehearsal.kubernetes.rules.accessors import name, pod
from rehearsal.kubernetes.rules.book import POD
from tests.cluster.differential.corpus import Sequence, Step
from tests.cluster.differential.emulation import Emulation, foreseen
from tests.cluster.differential.server import Server
from tests.cluster.differential.verdicts import agree
from tests.rehearsal.kubernetes.harness import Rehearsed

_EXCEPTIONS = Path(__file__).with_name("exceptions.toml")


@dataclass
class Comparison:
    """Names of sequences; `disagree` has both responses."""

    agree: list[str] = field(default_factory=list)
    foreseen: list[str] = field(default_factory=list)
    """Agree in that no pod is let in: the API server takes the owner, and the emulation says at once why."""
    excepted: list[str] = field(default_factory=list)
    disagree: dict[str, str] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    """Exceptions that are none any more."""

    @property
    def sequences(self) -> int:
        """How many were compared."""
        return len(self.agree) + len(self.foreseen) + len(self.excepted) + len(self.disagree)


def exceptions() -> dict[str, dict[str, Any]]:
    """The rows of `exceptions.toml` by the name of their sequence."""
    rows = tomllib.loads(_EXCEPTIONS.read_text(encoding="utf-8"))["exception"]
    return {name: row for row in rows for name in row["sequences"]}


def compare(sequences: tuple[Sequence, ...], rehearsed: Rehearsed, api: KubernetesApi) -> Comparison:
    """Run every sequence on both."""
    emulation, server = Emulation(rehearsed, ambient.VERSION), Server(api)
    found, listed = Comparison(), exceptions()
    try:
        for sequence in sequences:
            only_pods, said = _compared(sequence, emulation, server)
            name, excepted = sequence.name, sequence.name in listed
            if said and not excepted:
                found.disagree[name] = said
            elif said:
                found.excepted.append(name)
            else:
                (found.foreseen if only_pods else found.agree).append(name)
                found.idle += [name] if excepted else []
    finally:
        server.close()
    return found


def _compared(sequence: Sequence, emulation: Emulation, server: Server) -> tuple[bool, str]:
    """Whether the API server was asked for pods instead, and both responses where they disagree."""
    asked = [*sequence.steps]
    ours = emulation.answer(sequence)
    pods = [number for number, step in enumerate(asked) if foreseen(step, ours[number])]
    for number in pods:
        asked[number] = Step("create", POD, _first_pod(asked[number]))
    theirs = server.answer(Sequence(sequence.name, sequence.world, tuple(asked)), ours)
    if all(agree(our, their) for our, their in zip(ours, theirs, strict=True)):
        return bool(pods), ""
    return bool(pods), "\n".join(
        f"{step.verb} {step.token}\n  emulation: {our}\n  server: {their}"
        for step, our, their in zip(sequence.steps, ours, theirs, strict=True)
    )


def _first_pod(step: Step) -> Properties:
    """A pod as the controller of an object makes it."""
    view = pod(step.inputs)
    assert view
    metadata = {**view.metadata, "name": f"{name(step.inputs)}-x"}
    return {"metadata": {**metadata, "namespace": step.inputs["metadata"]["namespace"]}, "spec": view.spec}
