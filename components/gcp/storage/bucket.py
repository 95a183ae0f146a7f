"""A bucket with the settings of all buckets: private, with our key, with restorable objects."""

from collections.abc import Iterator
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp
from pulumi_gcp.storage import BucketLifecycleRuleArgsDict

from components.base import Component, Options
from infra.catalog.gcp import facts
from infra.catalog.gcp.storage_classes import COLD, COOL
from infra.errors import Problem, UserError
from infra.naming import sanitize

# Parts of an aborted upload are invisible in listings but billed; a week is ample for a retry.
ABORTED_UPLOAD_DAYS = 7
_DAY_S = 86400
# A bucket has a name of at most 63 characters, of which Pulumi uses eight to make it unique.
_NAME = 55


class GcpBucketArgs(TypedDict):
    """Location, lifecycle and key of objects."""

    region: str
    """The region, such as `us-central1`."""
    key_id: pulumi.Input[str]
    """Key of Cloud KMS in that region, which Cloud Storage may use."""
    noncurrent_days: int
    """Days an overwritten or deleted object can still be restored; 7 to 90 with `folders`."""
    expire_days: NotRequired[int]
    """Days after which an object is deleted. Default: never."""
    cool_after_days: NotRequired[int]
    """Days after which an object is moved to the class Nearline; not with `zone`. Default: never."""
    cold_after_days: NotRequired[int]
    """Days after which it is moved to the class Coldline; not with `zone`. Default: never."""
    folders: NotRequired[bool]
    """Whether folders are real (hierarchical namespace): they are renamed at once, and eight times as many
    requests a second are served from the start. Excludes versions, `autoclass` and `object_retention`; can
    only be chosen at creation. Default: no."""
    zone: NotRequired[str]
    """The one zone of the region with the objects: the fastest storage class (`RAPID`), lost with its zone.
    Needs `folders`; deleted objects cannot be restored. Default: in several zones."""
    autoclass: NotRequired[bool]
    """Let Cloud Storage move objects between storage classes by their use, without a delay or a fee for
    reading. Default: no."""
    object_retention: NotRequired[bool]
    """Allow locks on single objects (object retention); can only be chosen at creation. Default: no."""
    force_destroy: NotRequired[bool]
    """Delete the bucket even with objects in it. Default: no, `destroy` then stops at a bucket in use."""
    keep: NotRequired[bool]
    """Leave the bucket and its objects where they are when it is no longer part of a stack. Default: no."""


class GcpBucket(Component):
    """A hardened bucket.

    Access by IAM only and never public. Objects are encrypted with the given key; writes with other keys, or
    with Google's, are denied. Denying requests without TLS is a policy of the organization
    (`storage.secureHttpTransport`); buckets have no such setting.

    Overwritten and deleted objects can be restored: from versions, or with `folders`, which exclude these, by
    soft delete. Not by both: everything would be paid for twice.

    Raises UserError, with every problem, when arguments exclude each other. *Untested in a real
    project*, in particular that a zonal bucket takes a key of ours.
    """

    bucket: pulumi.Output[str]
    """Name of the bucket."""

    def __init__(self, name: str, args: GcpBucketArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        if problems := list(_problems(name, args)):
            raise UserError(problems)
        folders, zone = args.get("folders", False), args.get("zone")
        bucket = gcp.storage.Bucket(
            sanitize(name, max_length=_NAME),
            location=args["region"],
            # The region is the location, the zone is its placement; the SDK's list of classes lacks RAPID.
            storage_class="RAPID" if zone else None,
            custom_placement_config={"data_locations": [zone]} if zone else None,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            encryption={
                "default_kms_key_name": args["key_id"],
                "google_managed_encryption_enforcement_config": {"restriction_mode": "FullyRestricted"},
                "customer_supplied_encryption_enforcement_config": {"restriction_mode": "FullyRestricted"},
            },
            hierarchical_namespace={"enabled": True} if folders else None,
            versioning=None if folders else {"enabled": True},
            soft_delete_policy={"retention_duration_seconds": soft_delete_s(args)},
            lifecycle_rules=lifecycle_rules(args),
            autoclass={"enabled": True} if args.get("autoclass", False) else None,
            enable_object_retention=True if args.get("object_retention", False) else None,
            force_destroy=args.get("force_destroy", False),
            opts=self.child(pulumi.ResourceOptions(retain_on_delete=True if args.get("keep") else None)),
        )
        self.bucket = bucket.name
        self.register_declared()


def soft_delete_s(args: GcpBucketArgs) -> int:
    """Seconds that deleted objects can be restored; 0 with versions, or without."""
    return args["noncurrent_days"] * _DAY_S if args.get("folders", False) and "zone" not in args else 0


def lifecycle_rules(args: GcpBucketArgs) -> list[BucketLifecycleRuleArgsDict]:
    """The bucket's lifecycle: old versions and aborted uploads are always deleted, the rest as in `args`."""
    rules: list[BucketLifecycleRuleArgsDict] = [
        {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": ABORTED_UPLOAD_DAYS}}
    ]
    if not args.get("folders", False):
        rules.append(
            {
                "action": {"type": "Delete"},
                "condition": {
                    "days_since_noncurrent_time": args["noncurrent_days"],
                    "with_state": "ARCHIVED",
                },
            }
        )
    moves = ((COOL, args.get("cool_after_days")), (COLD, args.get("cold_after_days")))
    rules += [
        {
            "action": {"type": "SetStorageClass", "storage_class": to.name},
            "condition": {"age": days, "with_state": "LIVE"},
        }
        for to, days in moves
        if days is not None
    ]
    if "expire_days" in args:
        # With versions, this makes the current object a non-current one.
        rules.append(
            {"action": {"type": "Delete"}, "condition": {"age": args["expire_days"], "with_state": "LIVE"}}
        )
    return rules


def _problems(name: str, args: GcpBucketArgs) -> Iterator[Problem]:
    folders, days = args.get("folders", False), args["noncurrent_days"]
    if folders:
        yield from facts.limits["soft_delete_days"].problems(f"{name}.noncurrent_days", days)
    for other in ("autoclass", "object_retention"):
        if folders and args.get(other, False):
            rule, fix = "a bucket with folders has none", "Leave out one of the two."
            yield Problem(f"{name}.{other}", value=True, rule=rule, fix=fix, code="bucket-with-folders")
    if "zone" in args:
        for other in ("cool_after_days", "cold_after_days"):
            if (after := args.get(other)) is not None:
                rule = "objects of a bucket in one zone have one class"
                yield Problem(f"{name}.{other}", after, rule, "Leave it out.", code="class-in-zonal-bucket")
        if not folders:
            rule, code = "a bucket in one zone has folders", "zonal-bucket-without-folders"
            yield Problem(f"{name}.folders", value=False, rule=rule, fix="Set it to true.", code=code)
        if args["zone"].rpartition("-")[0] != args["region"]:
            rule = f"is not in {args['region']}"
            fix = f"Name a zone of {args['region']}."
            yield Problem(f"{name}.zone", args["zone"], rule, fix, code="bucket-zone-elsewhere")
