"""Volumes of EBS, wherever they come from."""

from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.walking import each, is_true
from policies.stack import Stack

_VOLUME, _CLASS = "aws:ebs/volume:Volume", "kubernetes:storage.k8s.io/v1:StorageClass"
_TEMPLATE, _POOL = "aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"
_MACHINES = ("aws:ec2/instance:Instance", "aws:ec2/launchConfiguration:LaunchConfiguration")
_ROOTS = ("/dev/xvda", "/dev/sda1")
_EBS = ("ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "kubernetes.io/aws-ebs")


@CATALOGUE.rule_around(
    About(
        "MLS-STO-09",
        "high",
        (_VOLUME, _TEMPLATE, *_MACHINES, _POOL, _CLASS),
        "Caches and swap hold parts of datasets and tokens; a volume that outlives its machine is paid for"
        " and forgotten, with all of that on it.",
        "Set encrypted on each volume, or switch on EncryptionByDefault; leave deleteOnTermination on.",
        ("CKV_AWS_3", "CKV_AWS_8"),
    )
)
def volumes_are_encrypted_and_end(source: Resource, stack: Stack) -> Iterator[Violation]:
    """Volumes are encrypted, and deleted with their machine."""
    if source.kind == _CLASS:
        yield from _of_class(source, stack)
        return
    usual = _is_usual(source, stack)
    if source.kind == _POOL:
        if source.props.get("launchTemplate"):
            raise NotApplicableError("its launch template says what its volumes are")
        if not usual:
            yield Violation("without a launch template, the volumes of its nodes are not encrypted")
    else:
        for path, volume in _volumes(source):
            yield from _judged(path, volume, usual)
        if source.kind != _VOLUME and not usual:
            yield from _root(source)


def _is_usual(source: Resource, stack: Stack) -> bool:
    """Whether the account encrypts every volume there."""
    return any(
        one.props.get("enabled") is not False
        for one in stack.all("aws:ebs/encryptionByDefault:EncryptionByDefault")
        if not one.region or not source.region or one.region == source.region
    )


def _of_class(storage: Resource, stack: Stack) -> Iterator[Violation]:
    if storage.props.get("provisioner") not in _EBS:
        raise NotApplicableError("it does not make volumes of EBS")
    given = storage.props.get("parameters") or {}
    if not is_true(given.get("encrypted")) and not _is_usual(storage, stack):
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


def _judged(path: str, volume: Any, usual: bool) -> Iterator[Violation]:
    before = f"{path}." if path else ""
    # EC2 deletes volumes of a launch through its API unless told otherwise (EC2 User Guide, "Preserve data
    # when an instance is terminated").
    kept = volume.get("deleteOnTermination")
    if kept is not None and kept != "" and not is_true(kept):
        yield Violation("it outlives its machine", f"{before}deleteOnTermination")
    if usual or is_true(volume.get("encrypted")):
        return
    if volume.get("snapshotId"):
        raise UndeterminedError(f"whether {volume['snapshotId']} is encrypted")
    yield Violation("it is not encrypted", f"{before}encrypted")


def _root(source: Resource) -> Iterator[Violation]:
    """The volume with the system: the image decides where nothing is said of it."""
    if source.kind == _TEMPLATE:
        said = [one.get("deviceName") for _, one in each(source.props, "blockDeviceMappings")]
        named = any(device in _ROOTS for device in said)
    else:
        named = any(True for _ in each(source.props, "rootBlockDevice"))
    if named:
        return
    if source.props.get("imageId") or source.props.get("ami"):
        raise UndeterminedError("whether the root volume of its image is encrypted")
    yield Violation("the root volume is as the image has it; those of AWS are not encrypted")
