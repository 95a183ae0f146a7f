"""Persistent volumes, the claims on them, and storage classes."""

from collections.abc import Iterator, Mapping

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, amount, at, mapping, text, texts, unsure
from rehearsal.kubernetes.rules.book import BOOK, CLAIM, CORE, VOLUME, ClusterView, existing
from rehearsal.kubernetes.rules.violations import forbidden, invalid, required, unsupported

_STORAGE = "kubernetes/kubernetes pkg/apis/storage/validation/validation.go"
CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
CLAIM_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)
_RECLAIM = ("Delete", "Recycle", "Retain")
# Source properties of a volume, in the API server's order.
SOURCES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte",
    "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk",
    "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip


@BOOK.rule("K8S-VOL-001", CLAIM, VOLUME, source=CORE)
def _access_modes(inputs: Properties) -> Iterator[Violation]:
    """Volumes and claims have access modes; ReadWriteOncePod excludes the others."""
    modes = at(inputs, "spec.accessModes")
    if absent(modes):
        yield required("spec.accessModes", "at least 1 access mode is required")
    given = [mode for _, mode in texts(modes)]
    for mode in given:
        if mode not in _MODES:
            yield unsupported("spec.accessModes", mode, _MODES)
    if "ReadWriteOncePod" in given and len(given) > 1:
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


@BOOK.rule("K8S-PVC-001", CLAIM, source=CORE)
def _claimed_size(inputs: Properties) -> Iterator[Violation]:
    """A claim requests an amount of storage."""
    size = at(inputs, "spec.resources.requests.storage")
    number = amount(size)
    if size is None and isinstance(at(inputs, "spec.resources.requests"), Mapping | None):
        yield required("spec.resources[storage]")
    elif number is not None and number <= 0:
        yield invalid("spec.resources[storage]", size, "must be greater than zero")


@BOOK.rule("K8S-VOL-002", CLAIM, VOLUME, source=CORE)
def _class_name(inputs: Properties) -> Iterator[Violation]:
    """The name of a storage class can be one; the mode of a volume is one of two."""
    own, mode = text(at(inputs, "spec.storageClassName")), at(inputs, "spec.volumeMode")
    if own and (wrong := grammar.subdomain(own)):
        yield invalid("spec.storageClassName", own, wrong)
    if mode not in (None, UNKNOWN, "Block", "Filesystem"):
        yield unsupported("spec.volumeMode", mode, ("Block", "Filesystem"))


@BOOK.rule("K8S-PV-001", VOLUME, source=CORE)
def _one_source(inputs: Properties) -> Iterator[Violation]:
    """A volume has exactly one source."""
    spec = inputs.get("spec")
    given = [source for source in SOURCES if mapping(spec).get(source) is not None]
    if spec is not UNKNOWN and not given:
        yield required("spec", "must specify a volume type")
    for extra in given[1:]:
        yield forbidden(f"spec.{extra}", "may not specify more than 1 volume type")


@BOOK.rule("K8S-PV-002", VOLUME, source=CORE)
def _capacity(inputs: Properties) -> Iterator[Violation]:
    """A volume has a capacity of storage, and of nothing else."""
    capacity = at(inputs, "spec.capacity")
    if absent(capacity):
        yield required("spec.capacity")
    elif isinstance(capacity, dict) and set(capacity) != {"storage"}:
        yield unsupported("spec.capacity", capacity, ("storage",))
    elif (number := amount(at(capacity, "storage"))) is not None and number <= 0:
        yield invalid("spec.capacity[storage]", at(capacity, "storage"), "must be greater than zero")


@BOOK.rule("K8S-PV-003", VOLUME, source=CORE)
def _reclaim(inputs: Properties) -> Iterator[Violation]:
    """An unclaimed volume is retained, deleted or recycled; a local one names its node."""
    policy = at(inputs, "spec.persistentVolumeReclaimPolicy")
    if policy not in (None, UNKNOWN, "", *_RECLAIM):
        yield unsupported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM)
    if at(inputs, "spec.local") is not None and absent(at(inputs, "spec.nodeAffinity")):
        yield required("spec.nodeAffinity", "Local volume requires node affinity")


@BOOK.rule("K8S-PV-004", VOLUME, source=CORE)
def _driver(inputs: Properties) -> Iterator[Violation]:
    """A volume of a CSI driver names the driver and the volume."""
    csi = at(inputs, "spec.csi")
    driver = text(mapping(csi).get("driver"))
    if isinstance(csi, dict) and absent(csi.get("volumeHandle")):
        yield required("spec.csi.volumeHandle")
    if driver == "":
        yield required("spec.csi.driver")
    elif driver and (wrong := grammar.subdomain(driver.lower())):
        yield invalid("spec.csi.driver", driver, wrong)


@BOOK.rule("K8S-SC-001", CLASS, source=_STORAGE)
def _provisioner(inputs: Properties) -> Iterator[Violation]:
    """A storage class names its provisioner."""
    own = text(inputs.get("provisioner"))
    if absent(inputs.get("provisioner")):
        yield required("provisioner")
    elif own and (wrong := grammar.label_key(own.lower())):
        yield invalid("provisioner", own, wrong)


@BOOK.rule("K8S-SC-002", CLASS, source=_STORAGE)
def _class_choices(inputs: Properties) -> Iterator[Violation]:
    """A storage class retains or deletes its volumes, and binds immediately or for the first pod."""
    choices = {
        "reclaimPolicy": ("Delete", "Retain"),
        "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
    }
    for path, known in choices.items():
        given = inputs.get(path)
        if given not in (None, UNKNOWN, "", *known):
            yield unsupported(path, given, known)


@BOOK.rule_around("K8S-PVC-002", CLAIM, source=CORE)
def _no_shrinking(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A claim may grow once it is bound, and not shrink."""
    before, path = existing(world, inputs), "spec.resources.requests.storage"
    if before is None or unsure(at(inputs, path)):
        return
    old, new = amount(at(before.inputs, path)), amount(at(inputs, path))
    if old != new and at(before.outputs, "status.phase") == "Pending":
        yield forbidden("spec", CLAIM_FIXED)
    elif old is not None and new is not None and new < old:
        yield forbidden(path, "field can not be less than previous value")
