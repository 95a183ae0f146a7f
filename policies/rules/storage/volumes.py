"""EBS volumes of all sources."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.pools import INSTANCE, template_of
from policies.rules.properties import each, is_true
from policies.stack import Stack

_VOLUME, _CLASS = "aws:ebs/volume:Volume", "kubernetes:storage.k8s.io/v1:StorageClass"
_TEMPLATE, _POOL = "aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"
_MACHINES = (INSTANCE, "aws:ec2/launchConfiguration:LaunchConfiguration")
_ROOTS = ("/dev/xvda", "/dev/sda1")
_EBS = ("ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "kubernetes.io/aws-ebs")


@CATALOG.rule_around(
    "MLS-STO-09",
    "high",
    (_VOLUME, _TEMPLATE, *_MACHINES, _POOL, _CLASS),
    "Caches and swap contain parts of datasets and tokens; a volume that outlives its machine is billed"
    " and forgotten, with all of them.",
    "Set encrypted on each volume, or enable EncryptionByDefault; leave deleteOnTermination on.",
    ("CKV_AWS_3", "CKV_AWS_8"),
)
def volumes_are_encrypted_and_deleted(source: Resource, stack: Stack) -> Iterator[Violation]:
    """Volumes are encrypted, and deleted with their machine."""
    if source.kind == _CLASS:
        yield from _of_class(source, stack)
        return
    default = _is_default(source, stack)
    if source.kind == _POOL:
        if source.props.get("launchTemplate"):
            raise NotApplicableError("its launch template defines its volumes")
        if not default:
            yield Violation("without a launch template, the volumes of its nodes are not encrypted")
    else:
        for path, volume in _volumes(source):
            yield from _judged(path, volume, default)
        if source.kind != _VOLUME and not default:
            yield from _root(source, stack)


def _is_default(source: Resource, stack: Stack) -> bool:
    return any(
        one.props.get("enabled") is not False
        for one in stack.all("aws:ebs/encryptionByDefault:EncryptionByDefault")
        if not one.region or not source.region or one.region == source.region
    )


def _of_class(storage: Resource, stack: Stack) -> Iterator[Violation]:
    if storage.props.get("provisioner") not in _EBS:
        raise NotApplicableError("it does not make volumes of EBS")
    given = storage.props.get("parameters") or {}
    if not is_true(given.get("encrypted")) and not _is_default(storage, stack):
        yield Violation("the volumes of claims are not encrypted", "parameters.encrypted")


def _volumes(source: Resource) -> Iterator[tuple[str, Any]]:
    if source.kind == _VOLUME:
        yield "", source.props
    elif source.kind == _TEMPLATE:
        yield from each(source.props, "blockDeviceMappings", "ebs")
    else:
        for key in ("rootBlockDevice", "ebsBlockDevices"):
            for path, volume in each(source.props, key):
                if not volume.get("noDevice"):
                    yield path, volume


def _judged(path: str, volume: Any, default: bool) -> Iterator[Violation]:
    before = f"{path}." if path else ""
    # EC2 deletes volumes of a launch through its API by default (EC2 User Guide, "Preserve data
    # when an instance is terminated").
    kept = volume.get("deleteOnTermination")
    if kept is not None and kept != "" and not is_true(kept):
        yield Violation("it outlives its machine", f"{before}deleteOnTermination")
    if default or is_true(volume.get("encrypted")):
        return
    if volume.get("snapshotId"):
        raise UndeterminedError(f"it is not known whether {volume['snapshotId']} is encrypted")
    yield Violation("it is not encrypted", f"{before}encrypted")


def _root(source: Resource, stack: Stack) -> Iterator[Violation]:
    """The root volume: a launch template, which is judged itself, or the image decides by default."""
    if source.kind == _TEMPLATE:
        named = _names_root(source)
    else:
        named = any(True for _ in each(source.props, "rootBlockDevice"))
    if not named and source.kind == INSTANCE:
        template = template_of(source, stack)
        named = template is not None and _names_root(template)
    if named:
        return
    if source.props.get("imageId") or source.props.get("ami"):
        raise UndeterminedError("it is not known whether the root volume of its image is encrypted")
    yield Violation("the image defines the root volume, and images of AWS are not encrypted")


def _names_root(template: Resource) -> bool:
    return any(one.get("deviceName") in _ROOTS for _, one in each(template.props, "blockDeviceMappings"))
