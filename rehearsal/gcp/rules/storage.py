"""Buckets, managed folders, Filestore and Managed Lustre."""

import re
from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation
from rehearsal.gcp import facts
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items, without_services

_DOCS = "hashicorp/terraform-provider-google@e03b7622: website/docs/r/"
_TOOLKIT = "GoogleCloudPlatform/cluster-toolkit@10470803: modules/file-system/"
# Older names of the basic tiers.
_TIERS = {"STANDARD": "BASIC_HDD", "PREMIUM": "BASIC_SSD"}
_FACTS = "infra/catalog/gcp/tables/storage.toml: "
_BUCKET, _FOLDER = "gcp:storage/bucket:Bucket", "gcp:storage/managedFolder:ManagedFolder"
_FILESTORE, _LUSTRE = "gcp:filestore/instance:Instance", "gcp:lustre/instance:Instance"
_BUCKET_NAME = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")
_NFS4_TIERS = ("HIGH_SCALE_SSD", "ZONAL", "REGIONAL", "ENTERPRISE")


@BOOK.rule("GCP-STORAGE-001", _BUCKET, source="UnitVectorY-Labs/gcpvalidate: storage.IsValidBucketName")
def _bucket_name(inputs: Properties) -> Iterator[Violation]:
    """Bucket names have 3 to 63 lowercase letters, digits, dashes, underscores and dots (222 with dots)."""
    name = inputs.get("name")
    if not isinstance(name, str):
        return
    longest = 222 if "." in name else 63
    fits = _BUCKET_NAME.fullmatch(name) and not _ADDRESS.fullmatch(name)
    if not fits or not 3 <= len(name) <= longest:
        yield Violation("name", f"Invalid bucket name: '{name}'", f"Use 3 to {longest} of a-z, 0-9, - and _.")


@BOOK.rule("GCP-STORAGE-003", _BUCKET, source=f"{_DOCS}storage_bucket (soft_delete_policy)")
def _soft_delete(inputs: Properties) -> Iterator[Violation]:
    """Soft-deleted objects are kept 7 to 90 days, or not at all."""
    seconds = block(inputs.get("softDeletePolicy")).get("retentionDurationSeconds")
    if isinstance(seconds, int | float) and seconds != 0 and not 604800 <= seconds <= 7776000:
        yield Violation(
            "softDeletePolicy.retentionDurationSeconds",
            "must be 0 or between 604800 (7 days) and 7776000 (90)",
        )


@BOOK.rule("GCP-STORAGE-004", _BUCKET, source=f"{_DOCS}storage_bucket (retention_policy)")
def _retention(inputs: Properties) -> Iterator[Violation]:
    """Objects are retained less than 100 years."""
    seconds = block(inputs.get("retentionPolicy")).get("retentionPeriod")
    plain = str(seconds) if isinstance(seconds, str | int | float) and not isinstance(seconds, bool) else ""
    if re.fullmatch(r"\d+(\.0)?", plain) and not 0 < float(plain) < 3155760000:
        yield Violation("retentionPolicy.retentionPeriod", "must be above 0 and below 3155760000 seconds")


@BOOK.rule("GCP-STORAGE-005", _BUCKET, source=f"{_DOCS}storage_bucket (lifecycle_rule)")
def _conditions(inputs: Properties) -> Iterator[Violation]:
    """A lifecycle rule has at least one condition."""
    for index, one in enumerate(items(inputs.get("lifecycleRules"))):
        condition = block(one).get("condition")
        if isinstance(condition, dict) and not [value for value in condition.values() if value is not None]:
            yield Violation(f"lifecycleRules[{index}].condition", "at least one condition must be given")


@BOOK.rule_around("GCP-STORAGE-008", _FOLDER, source=f"{_DOCS}storage_managed_folder")
def _folder_bucket(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Managed folders are created in buckets with uniform bucket-level access."""
    bucket = world.find(inputs.get("bucket"), "storage/bucket:Bucket")
    if bucket and bucket.outputs.get("uniformBucketLevelAccess") is not True:
        yield Violation(
            "bucket", f"{bucket.id} does not have uniform bucket-level access", "", "failedPrecondition"
        )


@BOOK.rule("GCP-STORAGE-009", _BUCKET, source=f"{_DOCS}storage_bucket (rpo)")
def _turbo(inputs: Properties) -> Iterator[Violation]:
    """Turbo replication is for dual-region buckets."""
    location = inputs.get("location")
    regional = isinstance(location, str) and re.fullmatch(r"[A-Za-z]+-[A-Za-z]+\d+", location)
    if inputs.get("rpo") == "ASYNC_TURBO" and regional:
        yield Violation("rpo", f"ASYNC_TURBO is for dual-region buckets, {location} is a region")


@BOOK.rule("GCP-FILESTORE-001", _FILESTORE, source=f"{_FACTS}filestore")
def _capacity(inputs: Properties) -> Iterator[Violation]:
    """The size of a share is one that the tier offers."""
    name = inputs.get("tier")
    tier = facts.catalog().filestore_tiers.get(_TIERS.get(str(name), str(name)))
    size = block(inputs.get("fileShares")).get("capacityGb")
    problem = tier.problem(int(size)) if tier and isinstance(size, int | float) else None
    if problem:
        yield Violation("fileShares.capacityGb", problem)


@BOOK.rule_around(
    "GCP-FILESTORE-007",
    _FILESTORE,
    source="2i2c-org/infrastructure pull request 3425 (text), issue 4257 (basic tiers)",
)
def _basic_only_grows(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The share of a basic tier keeps its size or gets more; other tiers may get less."""
    before, tier = world.current(_FILESTORE.removeprefix("gcp:")), str(inputs.get("tier"))
    old, new = (block(one.get("fileShares")) for one in (before.inputs if before else {}, inputs))
    had, wanted = old.get("capacityGb"), new.get("capacityGb")
    if not isinstance(had, int | float) or not isinstance(wanted, int | float):
        return
    if wanted < had and _TIERS.get(tier, tier) in _TIERS.values():
        message = f'capacity for file share "{new.get("name")}" may only be increased.'
        yield Violation("fileShares.capacityGb", message, "Make another instance, and copy the files.")


@BOOK.rule("GCP-FILESTORE-002", _FILESTORE, source=f"{_TOOLKIT}filestore/README.md (protocol)")
def _protocol(inputs: Properties) -> Iterator[Violation]:
    """NFS 4.1 is not for the basic tiers."""
    tier = inputs.get("tier")
    if inputs.get("protocol") == "NFS_V4_1" and isinstance(tier, str) and tier not in _NFS4_TIERS:
        yield Violation("protocol", f"NFS_V4_1 is not supported by {tier}; it is by {', '.join(_NFS4_TIERS)}")


@BOOK.rule("GCP-FILESTORE-003", _FILESTORE, source=f"{_DOCS}filestore_instance (networks)")
def _one_network(inputs: Properties) -> Iterator[Violation]:
    """An instance is in a single network."""
    if len(items(inputs.get("networks"))) > 1:
        yield Violation("networks[1]", "only a single network is supported")


@BOOK.rule("GCP-FILESTORE-005", _FILESTORE, source=f"{_TOOLKIT}filestore/README.md (region, zone)")
def _tier_place(inputs: Properties) -> Iterator[Violation]:
    """Regional and Enterprise are in a region, the other tiers in a zone."""
    tier, location = inputs.get("tier"), inputs.get("location")
    if isinstance(tier, str) and isinstance(location, str):
        regional = tier in ("ENTERPRISE", "REGIONAL")
        if regional != (location.count("-") == 1):
            yield Violation("location", f"{tier} needs a {'region' if regional else 'zone'}, not {location}")


@BOOK.rule("GCP-LUSTRE-001", _LUSTRE, source=f"{_FACTS}lustre")
def _lustre_size(inputs: Properties) -> Iterator[Violation]:
    """Capacity is a multiple of the tier's smallest size, up to its largest."""
    throughput, size = inputs.get("perUnitStorageThroughput"), inputs.get("capacityGib")
    try:
        tier, gib = facts.catalog().lustre_tiers.get(int(str(throughput))), int(str(size))
    except ValueError:
        return
    problem = tier.problem(gib) if tier else None
    if problem:
        yield Violation("capacityGib", problem)


@BOOK.rule("GCP-LUSTRE-002", _LUSTRE, source=f"{_DOCS}lustre_instance (per_unit_storage_throughput)")
def _lustre_tier(inputs: Properties) -> Iterator[Violation]:
    """The throughput is one of the tiers."""
    value = inputs.get("perUnitStorageThroughput")
    offered = [str(throughput) for throughput in sorted(facts.catalog().lustre_tiers)]
    if isinstance(value, str | int) and str(value) not in (*offered, "0"):
        yield Violation("perUnitStorageThroughput", f"{value} is not one of {', '.join(offered)}")


@BOOK.rule_around(
    "GCP-LUSTRE-005", _LUSTRE, source=f"{_TOOLKIT}managed-lustre/README.md (private service access)"
)
def _private_access(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The network of an instance has private service access."""
    network = without_services(inputs.get("network"), world)
    if network is not None:
        yield Violation(
            "network",
            f"{network.id} has no private service access",
            "Create a servicenetworking.Connection first and let the instance depend on it.",
            "failedPrecondition",
        )


@BOOK.rule("GCP-LUSTRE-006", _LUSTRE, source=f"{_DOCS}lustre_instance (dynamic_tier_options)")
def _dynamic(inputs: Properties) -> Iterator[Violation]:
    """The dynamic tier has no fixed throughput."""
    mode = block(inputs.get("dynamicTierOptions")).get("mode")
    throughput = inputs.get("perUnitStorageThroughput")
    if (
        isinstance(mode, str)
        and mode != "DISABLED"
        and isinstance(throughput, str | int)
        and throughput not in (0, "0")
    ):
        yield Violation("perUnitStorageThroughput", "must not be set with the dynamic tier")


@BOOK.rule_around(
    "GCP-STORAGE-019",
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "gcp:storage/bucketIAMBinding:BucketIAMBinding",
    source="Cloud Storage documentation, Public access prevention; googleapis/google-cloud-dotnet pull "
    "request 5821 (integration test: allUsers is refused)",
)
def _public_members(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A bucket that prevents public access takes no public member."""
    bucket = world.find(inputs.get("bucket"), "storage/bucket:Bucket")
    if bucket is None or world.preview or bucket.outputs.get("publicAccessPrevention") != "enforced":
        return
    for path in ("member", "members[]"):
        for here, member in each(inputs, path):
            if member in ("allUsers", "allAuthenticatedUsers"):
                yield Violation(
                    here,
                    "The member bindings allUsers and allAuthenticatedUsers are not allowed since public "
                    "access prevention is enforced.",
                    f"Name members, or set publicAccessPrevention of {bucket.id} to inherited.",
                    "conditionNotMet",
                )


@BOOK.rule_around(
    "GCP-STORAGE-020",
    "gcp:storage/bucketAccessControl:BucketAccessControl",
    source="hashicorp/terraform issue 23769 (text)",
)
def _acl_of_uniform(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A bucket with uniform bucket-level access has no access control list."""
    bucket = world.find(inputs.get("bucket"), "storage/bucket:Bucket")
    if bucket and not world.preview and bucket.outputs.get("uniformBucketLevelAccess") is True:
        yield Violation(
            "bucket",
            "Cannot get legacy ACL for a bucket that has uniform bucket-level access.",
            "Give a role with a BucketIAMMember.",
            "invalid",
        )
