"""Sizes, IOPS and throughput of EBS volumes, wherever a type describes one."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import number, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation

_SOURCE = (
    "EBS User Guide, EBS volume types (gp3 up to 64 TiB, 80000 IOPS, 2000 MiB/s since 2025-09); "
    "botocore 1.44.5 ec2/2016-11-15 CreateVolumeRequest (Iops, Size, Throughput)"
)
_VOLUME = "aws:ebs/volume:Volume"
_WITH_DISKS = (
    "aws:ec2/instance:Instance",
    "aws:ec2/launchConfiguration:LaunchConfiguration",
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
)
_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
_ALL = (_VOLUME, *_WITH_DISKS, _TEMPLATE)
# Type -> lowest and highest size in GiB, IOPS, IOPS for a GiB.
_SIZES = {
    "gp2": (1, 16384),
    "gp3": (1, 65536),
    "io1": (4, 16384),
    "io2": (4, 65536),
    "st1": (125, 16384),
    "sc1": (125, 16384),
    "standard": (1, 1024),
}
_IOPS = {"gp3": (3000, 80000), "io1": (100, 64000), "io2": (100, 256000)}
_RATIOS = {"gp3": 500, "io1": 50, "io2": 1000}
# What a gp3 volume has of any size; throughput in MiB/s, and the most of it for an IOPS.
_BASE_IOPS, _BASE_THROUGHPUT, _THROUGHPUT_RATIO = 3000, 125, 0.25
_MOST_THROUGHPUT = 2000


def _disks(inputs: Properties) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """(path with a dot, prefix of names, volume type or "", volume) of every volume."""
    if "availabilityZone" in inputs and not {"ami", "imageId", "instanceType"} & set(inputs):
        yield "", "", text(inputs.get("type", "gp2")) or "", inputs
    for place in ("rootBlockDevice", "ebsBlockDevices[]", "blockDeviceMappings[].ebs"):
        for path, disk in each(inputs, place):
            if isinstance(disk, Mapping):
                yield f"{path}.", "volume", text(disk.get("volumeType")) or "", disk


def _named(prefix: str, name: str) -> str:
    return f"{prefix}{name.capitalize()}" if prefix else name


def _outside(
    inputs: Properties, name: str, limits: Mapping[str, tuple[int, int]], unit: str, prefixed: bool
) -> Iterator[Violation]:
    """Values of a property of volumes outside of the limits (least, most) of the volume's type."""
    for path, prefix, kind, disk in _disks(inputs):
        own = _named(prefix, name) if prefixed else name
        value, span = number(disk.get(own)), limits.get(kind)
        if value is not None and span and not span[0] <= value <= span[1]:
            message = f"a {kind} volume has {span[0]} to {span[1]} {unit}, not {value:.0f}"
            yield Violation(f"{path}{own}", message, _within(value, span, unit))


def _within(value: float, span: tuple[int, int], unit: str) -> str:
    return f"The nearest is {span[0] if value < span[0] else span[1]} {unit}."


@BOOK.rule("AWS-EC2-012", *_ALL, source=_SOURCE)
def volume_size(inputs: Properties) -> Iterator[Violation]:
    """A volume's size is one that its type has."""
    yield from _outside(inputs, "size", _SIZES, "GiB", True)


@BOOK.rule("AWS-EC2-013", *_ALL, source=_SOURCE)
def volume_iops(inputs: Properties) -> Iterator[Violation]:
    """A volume's IOPS are within what its type can be provisioned with."""
    yield from _outside(inputs, "iops", _IOPS, "IOPS", False)


@BOOK.rule("AWS-EC2-014", *_ALL, source=_SOURCE)
def throughput_of_gp3(inputs: Properties) -> Iterator[Violation]:
    """Throughput is provisioned for gp3 volumes only: 125 to 2000 MiB/s, at most a quarter of the IOPS."""
    for path, _, kind, disk in _disks(inputs):
        value, iops = number(disk.get("throughput")), number(disk.get("iops", _BASE_IOPS))
        if not value or not kind:
            continue
        if kind != "gp3":
            yield Violation(f"{path}throughput", f"only gp3 volumes take it, not {kind}", "Leave it out.")
        elif not _BASE_THROUGHPUT <= value <= _MOST_THROUGHPUT:
            message = f"{value:.0f} MiB/s is not between {_BASE_THROUGHPUT} and {_MOST_THROUGHPUT}"
            yield Violation(f"{path}throughput", message)
        elif iops is not None and value > iops * _THROUGHPUT_RATIO:
            message = (
                f"{value:.0f} MiB/s need {value / _THROUGHPUT_RATIO:.0f} IOPS, the volume has {iops:.0f}"
            )
            yield Violation(
                f"{path}throughput", message, f"At most {iops * _THROUGHPUT_RATIO:.0f}, or more IOPS."
            )


@BOOK.rule("AWS-EC2-018", *_ALL, source=_SOURCE)
def iops_for_the_size(inputs: Properties) -> Iterator[Violation]:
    """A volume has no more IOPS than its size allows: 500 for a GiB of gp3, 50 of io1, 1000 of io2."""
    for path, prefix, kind, disk in _disks(inputs):
        size, iops = number(disk.get(_named(prefix, "size"))), number(disk.get("iops"))
        if size is None or iops is None or kind not in _RATIOS:
            continue
        most = max(size * _RATIOS[kind], _BASE_IOPS if kind == "gp3" else 100)
        if iops > most:
            message = f"a {kind} volume of {size:.0f} GiB has at most {most:.0f} IOPS, not {iops:.0f}"
            yield Violation(f"{path}iops", message, f"It needs {-(-iops // _RATIOS[kind]):.0f} GiB.")


@BOOK.rule("AWS-EC2-019", *_ALL, source=_SOURCE)
def iops_of_its_type(inputs: Properties) -> Iterator[Violation]:
    """IOPS are provisioned for gp3, io1 and io2 only, and io1 and io2 need them."""
    for path, _, kind, disk in _disks(inputs):
        if kind in ("io1", "io2") and disk.get("iops") is None:
            if disk.get("snapshotId") is None:
                yield Violation(f"{path}iops", f"The parameter iops must be specified for {kind} volumes.")
        elif number(disk.get("iops")) and kind and kind not in _IOPS:
            message = f"The parameter iops is not supported for {kind} volumes."
            yield Violation(f"{path}iops", message, "Use gp3, io1 or io2.")


@BOOK.rule(
    "AWS-EC2-020", _VOLUME, source="pulumi-aws 7.51.1 docstring of aws.ebs.Volume (multi_attach_enabled)"
)
def multi_attach(inputs: Properties) -> Iterator[Violation]:
    """Only io1 and io2 volumes are attached to several instances."""
    kind = text(inputs.get("type", "gp2"))
    if inputs.get("multiAttachEnabled") is True and kind not in (None, "io1", "io2"):
        yield Violation("multiAttachEnabled", f"{kind} volumes do not support it", "Use io1 or io2.")


@BOOK.rule("AWS-EC2-021", _VOLUME, source="pulumi-aws 7.51.1 docstring of aws.ebs.Volume (size, snapshot_id)")
def size_or_snapshot(inputs: Properties) -> Iterator[Violation]:
    """A volume has a size, or a snapshot that it is made of."""
    if inputs.get("size") is None and inputs.get("snapshotId") is None:
        yield Violation("size", "one of size and snapshotId must be given")
