"""Networks of GKE's nodes as objects: `Network` and `GKENetworkParamSet` (networking.gke.io/v1)."""

from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import at, name, text, unsure
from rehearsal.kubernetes.rules.book import BOOK, ClusterView, existing
from rehearsal.kubernetes.rules.violations import IMMUTABLE, invalid

_API = "kubernetes:networking.gke.io/v1:"
NETWORK, PARAMETERS = f"{_API}Network", f"{_API}GKENetworkParamSet"
_DOCS = "GKE documentation, Set up multi-network support for Pods (general limitations)"
_CONTROLLER = "kubernetes/cloud-provider-gcp@4e245312 pkg/controller/gkenetworkparamset"
# The path of a socket of a device network has the name in it, and a limit.
_LONGEST = 41


@BOOK.rule_around(
    "K8S-GKE-001",
    PARAMETERS,
    source=f"{_CONTROLLER}/gnpcontroller_validations.go (DeviceModeSubnetAlreadyInUse); when the older is "
    "deleted, the controller does not look at the newer one again (its DeleteFunc)",
)
def _subnetwork_once(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """Parameters of devices have a subnetwork that no older ones have."""
    subnetwork, own = at(inputs, "spec.vpcSubnet"), name(inputs)
    for other in world.all(PARAMETERS):
        same = at(other.inputs, "spec.vpcSubnet") == subnetwork and other.name != own
        if same and text(subnetwork) and text(at(inputs, "spec.deviceMode")):
            yield Violation(
                "spec.vpcSubnet",
                "GNP with deviceMode can't reference a subnet already in use. "
                f"Subnet '{subnetwork}' is already in use by '{other.name}'",
                "Delete that object first.",
                advice=True,
            )


@BOOK.rule_around("K8S-GKE-002", NETWORK, PARAMETERS, source=_DOCS)
def _fixed(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """Neither kind can be changed: objects are deleted and created again."""
    before = existing(world, inputs)
    if before is None or unsure(inputs.get("spec")):
        return
    if before.inputs.get("spec") != inputs.get("spec"):
        yield invalid("spec", inputs.get("spec"), IMMUTABLE)


@BOOK.rule("K8S-GKE-003", NETWORK, source=_DOCS)
def _short_name(inputs: Properties) -> Iterator[Violation]:
    """The name of a network of devices has at most 41 characters."""
    own = name(inputs)
    if at(inputs, "spec.type") == "Device" and own and len(own) > _LONGEST:
        yield invalid("metadata.name", own, f"must be no more than {_LONGEST} characters")
