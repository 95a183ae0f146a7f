"""File systems: encryption keys, backups and access points."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.encryption_keys import is_own_key
from policies.rules.properties import each
from policies.rules.storage.backups import is_planned
from policies.stack import Stack

_LUSTRE, _GCP_LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem", "gcp:lustre/instance:Instance"
_GKE = "gcp:container/cluster:Cluster"
_LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
_EFS, _POINT = "aws:efs/fileSystem:FileSystem", "aws:efs/accessPoint:AccessPoint"


@CATALOG.rule_around(
    "MLS-STO-05",
    "high",
    (_LUSTRE, _GCP_LUSTRE),
    "Your own key controls access to the data, logs each use, and can be revoked.",
    "Set a KMS key in the file system; that replaces it, so export its data first.",
    ("CKV_AWS_190",),
)
def lustre_has_an_own_key(system: Resource, stack: Stack) -> Iterator[Violation]:
    """Lustre file systems are encrypted with a key of KMS that you own."""
    if system.kind == _LUSTRE and _is_scratch(system):
        # FSx API Reference, CreateFileSystem: KmsKeyId is for PERSISTENT_1 and PERSISTENT_2 only.
        raise NotApplicableError("a scratch file system takes no key; FSx encrypts it with its own")
    name = "kmsKeyId" if system.kind == _LUSTRE else "kmsKey"
    if not is_own_key(system, name, system.raw(name)):
        if system.kind == _GCP_LUSTRE and stack.all(_GKE):
            # Managed Lustre documentation, "Customer-managed encryption keys", Limitations.
            raise NotApplicableError(
                "GKE cannot use one with a key of yours; Google encrypts it with its own"
            )
        yield Violation("it is encrypted with a key of the service", name)


@CATALOG.rule_around(
    "MLS-STO-06",
    "high",
    (_LUSTRE,),
    "Scratch storage has one copy of each file and no backup; a failed server takes checkpoints with it.",
    "Link it to a bucket with a DataRepositoryAssociation, or let a persistent one make backups.",
)
def lustre_has_a_second_copy(system: Resource, stack: Stack) -> Iterator[Violation]:
    """Lustre file systems are linked to a bucket; a persistent one may have backups instead."""
    if _is_linked(system, stack):
        return
    if _is_scratch(system):
        yield Violation("a scratch file system without a bucket behind it loses what it holds")
    elif not (system.props.get("automaticBackupRetentionDays") or 0) > 0 and not is_planned(system, stack):
        message = "it has neither backups nor a bucket behind it"
        yield Violation(message, "automaticBackupRetentionDays")


@CATALOG.rule_around(
    "MLS-STO-07",
    "low",
    (_LUSTRE,),
    "A backup without the tags of its file system has no owner, in bills and in clean-ups.",
    "Set copyTagsToBackups; that replaces the file system.",
    ("FSBP FSx.2",),
)
def backups_of_lustre_have_its_tags(system: Resource, stack: Stack) -> Iterator[Violation]:
    """Backups of Lustre file systems carry their tags."""
    # FSx for Lustre User Guide, "Working with backups": persistent ones that are not linked to S3.
    if _is_scratch(system):
        raise NotApplicableError("a scratch file system has no backups")
    if _is_linked(system, stack):
        raise NotApplicableError("a file system that is linked to a bucket has no backups")
    if system.props.get("copyTagsToBackups") is not True:
        yield Violation("its backups carry no tags", "copyTagsToBackups")


def _is_scratch(system: Resource) -> bool:
    """FSx creates SCRATCH_1 by default (FSx API Reference, CreateFileSystemLustreConfiguration)."""
    return str(system.props.get("deploymentType") or "SCRATCH_1").startswith("SCRATCH")


def _is_linked(system: Resource, stack: Stack) -> bool:
    return bool(system.props.get("importPath")) or any(stack.users(system, _LINK, "fileSystemId"))


@CATALOG.rule_around(
    "MLS-STO-08",
    "high",
    (_EFS, _POINT),
    "Home folders contain code, notes and tokens: deleted ones must be restorable, and a pod that mounts"
    " the root as root reads all of them.",
    "Encrypt it (that replaces it), add a BackupPolicy, and set a folder and a user in access points.",
    (
        *("FSBP EFS.2", "FSBP EFS.3", "FSBP EFS.4", "FSBP EFS.8"),
        *("CKV_AWS_42", "CKV_AWS_329", "CKV_AWS_330", "CKV2_AWS_18"),
    ),
)
def homes_are_backed_up_and_separate(one: Resource, stack: Stack) -> Iterator[Violation]:
    """EFS is encrypted and backed up, and its access points have a folder and a user of their own."""
    if one.kind == _POINT:
        folders = [folder.get("path") or "/" for _, folder in each(one.props, "rootDirectory")]
        if set(folders) <= {"/"}:
            yield Violation("it shows the root of the file system", "rootDirectory.path")
        if not any(True for _ in each(one.props, "posixUser")):
            yield Violation("clients choose their user, root included", "posixUser")
        return
    if one.props.get("encrypted") is not True:
        yield Violation("it is not encrypted", "encrypted")
    policies = [
        found.get("status") == "ENABLED"
        for user in stack.users(one, "aws:efs/backupPolicy:BackupPolicy", "fileSystemId")
        for _, found in each(user.props, "backupPolicy")
    ]
    # EFS API Reference, CreateFileSystem: backups are off by default, and on in a single zone.
    if not any(policies or [bool(one.props.get("availabilityZoneName"))]) and not is_planned(one, stack):
        yield Violation("it has no backups", fix="Add a BackupPolicy with status ENABLED.")
