"""FSx for Lustre: valid file systems and their links to buckets."""

import difflib
from collections.abc import Iterator
from typing import Any

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.network.openings import GROUP, openings
from rehearsal.aws.rules.reading import named, number, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, known
from rehearsal.core.rules.model import Violation

_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
_LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
_DOC = "pulumi-aws 7.51.1 docstring of aws.fsx.LustreFileSystem"
_CREATE = "botocore 1.44.5 fsx/2018-03-01 CreateFileSystemRequest (StorageCapacity, FileSystemTypeVersion)"
_METADATA = "botocore 1.44.5 fsx/2018-03-01 FileSystemLustreMetadataConfiguration"
_LINKS = "botocore 1.44.5 fsx/2018-03-01 CreateDataRepositoryAssociation"
_THROUGHPUTS = {
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
_TIERED_STEP = 4000
_METADATA_STEP, _METADATA_SMALL = 12000, (1500, 3000, 6000)
_MOST_LINKS = 8
_SLIP = 0.9
_LNET = 988


def _kind(inputs: Properties) -> Any:
    return inputs.get("deploymentType", "SCRATCH_1")


def _storage(inputs: Properties) -> Any:
    return inputs.get("storageType", "SSD")


@BOOK.rule("AWS-FSX-001", _SYSTEM, source=_DOC)
def throughput_of_the_deployment(inputs: Properties) -> Iterator[Violation]:
    """Each persistent deployment on SSD or HDD has its own throughputs per TiB, and needs one."""
    kind, storage, path = _kind(inputs), _storage(inputs), "perUnitStorageThroughput"
    offered = _THROUGHPUTS.get((kind, storage)) if known(kind) and known(storage) else None
    value = number(inputs.get(path))
    if offered and path not in inputs and inputs.get("backupId") is None:
        yield Violation(path, f"{kind} on {storage} needs it", f"Use one of {offered}.")
    if offered and value is not None and value not in offered:
        yield Violation(path, f"{kind} on {storage} has {offered} MB/s per TiB, not {value:.0f}")


@BOOK.rule("AWS-FSX-006", _SYSTEM, source=_METADATA)
def metadata_iops(inputs: Properties) -> Iterator[Violation]:
    """Metadata IOPS are 1500, 3000, 6000 or a multiple of 12000 (6000 or 12000 on Intelligent-Tiering)."""
    path = "metadataConfiguration.iops"
    iops = number(at(inputs, path))
    if iops is None:
        return
    if _storage(inputs) == "INTELLIGENT_TIERING":
        fits, offered = iops in (6000, 12000), "6000 or 12000"
    else:
        fits = iops in _METADATA_SMALL or (0 < iops <= 192000 and iops % _METADATA_STEP == 0)
        offered = "1500, 3000, 6000 or a multiple of 12000 up to 192000"
    if not fits:
        yield Violation(path, f"{iops:.0f} metadata IOPS are not offered", f"Use {offered}.")


@BOOK.rule("AWS-FSX-007", _SYSTEM, source=_METADATA)
def automatic_metadata(inputs: Properties) -> Iterator[Violation]:
    """Metadata mode AUTOMATIC is for SSD and takes no IOPS."""
    if at(inputs, "metadataConfiguration.mode") != "AUTOMATIC":
        return
    if _storage(inputs) == "INTELLIGENT_TIERING":
        yield Violation("metadataConfiguration.mode", "AUTOMATIC is for SSD", "Use USER_PROVISIONED.")
    elif at(inputs, "metadataConfiguration.iops") is not None:
        yield Violation("metadataConfiguration.iops", "mode AUTOMATIC takes none", "Leave it out.")


@BOOK.rule("AWS-FSX-008", _SYSTEM, source=f"{_CREATE}; sizes with EFA: the catalog's lustre.toml")
def capacity_fits(inputs: Properties) -> Iterator[Violation]:
    """The capacity is one that deployment, storage and throughput offer."""
    size, kind, storage = number(inputs.get("storageCapacity")), _kind(inputs), _storage(inputs)
    throughput = number(inputs.get("perUnitStorageThroughput"))
    if size is None or not known(kind) or not known(storage):
        return
    problem = _capacity_problem(
        int(size), kind, storage, int(throughput or 0), inputs.get("efaEnabled") is True
    )
    if problem:
        yield Violation("storageCapacity", problem)


def _capacity_problem(size: int, kind: str, storage: str, throughput: int, efa: bool) -> str | None:
    if storage == "HDD":
        step = {12: 6000, 40: 1800}.get(throughput)
        return f"{size} GiB is not a multiple of {step} GiB" if step and (size <= 0 or size % step) else None
    if storage != "SSD":
        return None
    table = facts.catalog().lustre
    if kind == "PERSISTENT_2" and throughput in table.tiers:
        return table.lustre_problem(size, throughput, efa)
    step = 3600 if kind == "SCRATCH_1" else 2400
    if size in (1200, 2400) or (size > 0 and size % step == 0):
        return None
    return f"{size} GiB is not 1200, 2400 or a multiple of {step} GiB"


@BOOK.rule("AWS-FSX-009", _SYSTEM, source=_DOC)
def storage_of_the_deployment(inputs: Properties) -> Iterator[Violation]:
    """HDD is for PERSISTENT_1, Intelligent-Tiering for PERSISTENT_2."""
    needed = {"HDD": "PERSISTENT_1", "INTELLIGENT_TIERING": "PERSISTENT_2"}.get(str(_storage(inputs)))
    if needed and known(_kind(inputs)) and _kind(inputs) != needed:
        yield Violation("storageType", f"{inputs['storageType']} needs deployment type {needed}")


@BOOK.rule("AWS-FSX-010", _SYSTEM, source=_DOC)
def tiering_needs(inputs: Properties) -> Iterator[Violation]:
    """Intelligent-Tiering needs a throughput in steps of 4000, a read cache and a metadata configuration."""
    if _storage(inputs) != "INTELLIGENT_TIERING":
        return
    for name in ("throughputCapacity", "dataReadCacheConfiguration", "metadataConfiguration"):
        if name not in inputs:
            yield Violation(name, "INTELLIGENT_TIERING needs it")
    value = number(inputs.get("throughputCapacity"))
    if value is not None and (value <= 0 or value % _TIERED_STEP):
        yield Violation("throughputCapacity", f"{value:.0f} is not a multiple of {_TIERED_STEP} MB/s")


@BOOK.rule("AWS-FSX-013", _SYSTEM, source=_DOC)
def export_needs_import(inputs: Properties) -> Iterator[Violation]:
    """An export path needs an import path in the same bucket."""
    source, target = inputs.get("importPath"), inputs.get("exportPath")
    if target is not None and source is None and _kind(inputs) != "PERSISTENT_2":
        yield Violation("exportPath", "it needs importPath")
    if isinstance(source, str) and isinstance(target, str) and _bucket(source) != _bucket(target):
        yield Violation("exportPath", f"it must be in the bucket of importPath, {_bucket(source)}")


@BOOK.rule("AWS-FSX-014", _SYSTEM, source=_CREATE)
def version_of_the_deployment(inputs: Properties) -> Iterator[Violation]:
    """PERSISTENT_2 does not run Lustre 2.10, and needs 2.15 for a metadata configuration."""
    version = inputs.get("fileSystemTypeVersion")
    if _kind(inputs) != "PERSISTENT_2":
        return
    if version == "2.10":
        yield Violation("fileSystemTypeVersion", "PERSISTENT_2 does not run Lustre 2.10", "Use 2.15.")
    if version == "2.12" and inputs.get("metadataConfiguration") is not None:
        yield Violation("fileSystemTypeVersion", "a metadata configuration needs Lustre 2.15")


@BOOK.rule("AWS-FSX-015", _SYSTEM, source=_DOC)
def backups_are_for_persistent(inputs: Properties) -> Iterator[Violation]:
    """Only persistent file systems are backed up automatically."""
    days = number(inputs.get("automaticBackupRetentionDays"))
    if days and _kind(inputs) in ("SCRATCH_1", "SCRATCH_2"):
        yield Violation("automaticBackupRetentionDays", f"{_kind(inputs)} takes none")


@BOOK.rule_around(
    "AWS-FSX-016",
    _SYSTEM,
    source="aws/aws-parallelcluster issue 6181; botocore 1.44.5 fsx/2018-03-01 InvalidNetworkSettings",
)
def clients_reach_the_servers(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Its security groups allow port 988 before it is created."""
    given = inputs.get("securityGroupIds")
    groups = [site.find(value, GROUP) for value in given] if isinstance(given, list) and given else [None]
    # Rules of a group that no program made are unknown, and a preview does not know the order of creation.
    if site.preview or not all(group and group.urn for group in groups):
        return
    if not any(one.tcp(_LNET) for group in groups if group for one in openings(site, group, "ingress")):
        yield Violation(
            "securityGroupIds",
            "The file system cannot be created because the provided security groups do not permit Lustre "
            "LNET network traffic on port 988",
            "Let TCP 988 and 1018 to 1023 in from the clients and from the group itself, and let the file "
            "system depend on the rules.",
            "InvalidNetworkSettings",
        )


@BOOK.rule_around(
    "AWS-FSX-020", _LINK, source="botocore 1.44.5 fsx/2018-03-01 CreateDataRepositoryAssociationRequest"
)
def linked_bucket_exists(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The linked bucket is not a misspelling of an existing one."""
    path = text(inputs.get("dataRepositoryPath"))
    if path is None or site.preview or site.find(_bucket(path), "s3/bucket:Bucket") is not None:
        return
    # Data sets are often in buckets that no program made: only close names count as misspelled.
    known_names = [str(one.outputs.get("bucket")) for one in site.all("s3/bucket:Bucket")]
    if near := difflib.get_close_matches(_bucket(path), known_names, n=1, cutoff=_SLIP):
        yield Violation(
            "dataRepositoryPath",
            f"The specified bucket does not exist: {_bucket(path)}",
            f"Did you mean {near[0]}? Use an output of the bucket.",
            "BadRequest",
        )


@BOOK.rule_around("AWS-FSX-021", _LINK, source=_LINKS)
def scratch_1_has_no_links(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """SCRATCH_1 takes no associations."""
    system = site.find(inputs.get("fileSystemId"), "fsx/lustreFileSystem:LustreFileSystem")
    if system is not None and system.outputs.get("deploymentType") == "SCRATCH_1":
        yield Violation(
            "fileSystemId", "SCRATCH_1 takes no data repository association", "Use SCRATCH_2.", "BadRequest"
        )


@BOOK.rule_around(
    "AWS-FSX-022", _LINK, source="botocore 1.44.5 fsx/2018-03-01 CreateDataRepositoryAssociationRequest"
)
def linked_paths_are_apart(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The paths of a file system's associations do not overlap."""
    path = text(inputs.get("fileSystemPath"))
    for other in _siblings(inputs, site):
        taken = text(other.outputs.get("fileSystemPath"))
        if path is not None and taken is not None and _overlap(path, taken):
            yield Violation(
                "fileSystemPath",
                f"file system paths overlap with {named(other)}",
                f"{taken} is taken; choose a directory beside it.",
                "BadRequest",
            )


@BOOK.rule_around("AWS-FSX-023", _LINK, source=_LINKS)
def linked_places_differ(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A file system is linked to a bucket or prefix once."""
    place = text(inputs.get("dataRepositoryPath"))
    for other in _siblings(inputs, site):
        taken = text(other.outputs.get("dataRepositoryPath"))
        if place and taken and place.rstrip("/") == taken.rstrip("/"):
            yield Violation(
                "dataRepositoryPath", f"{place} is linked by {named(other)}", "Link another.", "BadRequest"
            )


@BOOK.rule_around("AWS-FSX-024", _LINK, source=_LINKS)
def eight_links(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A file system has at most 8 associations."""
    if len(_siblings(inputs, site)) >= _MOST_LINKS:
        yield Violation(
            "fileSystemId",
            f"it has {_MOST_LINKS} associations already",
            "Remove one.",
            "ServiceLimitExceeded",
        )


def _siblings(inputs: Properties, site: AwsContext) -> list[Any]:
    system, token = inputs.get("fileSystemId"), "fsx/dataRepositoryAssociation:DataRepositoryAssociation"
    if not known(system):
        return []
    return [one for one in site.others(token) if one.outputs.get("fileSystemId") == system]


def _bucket(path: str) -> str:
    return path.removeprefix("s3://").partition("/")[0]


def _overlap(one: str, other: str) -> bool:
    first, second = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)
