"""Cloud SQL, Filestore and buckets. Source: terraform-provider-google, services/sql, filestore, storage."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.dataplane import folders
from rehearsal.gcp import iam_delay
from rehearsal.gcp.rules.book import block
from rehearsal.gcp.services import peering
from rehearsal.gcp.site import Site

_BUCKET_OBJECTS = ("storage/bucketObject:BucketObject", "storage/managedFolder:ManagedFolder")


def _instance_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """A public address unless it is switched off, a private one where a network is given."""
    network = block(inputs.get("settings"), "ipConfiguration")
    public = (
        expand("{publicip}", f"{seed}/public", {}) if network.get("ipv4Enabled", True) is not False else ""
    )
    private = expand("{privateip}", f"{seed}/private", {}) if network.get("privateNetwork") else ""
    found = [(public, "PRIMARY"), (private, "PRIVATE")]
    return {
        "publicIpAddress": public,
        "privateIpAddress": private,
        "firstIpAddress": public or private,
        "ipAddresses": [{"ipAddress": value, "type": kind} for value, kind in found if value],
        "serverCaCerts": [{"cert": "-----BEGIN CERTIFICATE-----\nrehearsal\n-----END CERTIFICATE-----\n"}],
        "instanceType": "READ_REPLICA_INSTANCE" if inputs.get("masterInstanceName") else "CLOUD_SQL_INSTANCE",
        "settings": {"version": 1, "edition": _edition(inputs), **block(inputs.get("settings"))},
    }


def _edition(inputs: Properties) -> str:
    """Default edition of an instance. Source: Cloud SQL documentation, "Introduction to editions"."""
    major = re.fullmatch(r"POSTGRES_(\d+)", str(inputs.get("databaseVersion")))
    return "ENTERPRISE_PLUS" if major and int(major[1]) >= 16 else "ENTERPRISE"


def _share_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """Every network of a Filestore instance gets an address."""
    networks = [
        {"ipAddresses": [expand("{privateip}", f"{seed}/{index}", {})], **one}
        for index, one in enumerate(inputs.get("networks") or [])
    ]
    return {"networks": networks}


def _bucket_deleting(site: Site, bucket: Record) -> None:
    """`forceDestroy` empties the bucket first; objects that pods wrote also block the deletion."""
    if bucket.outputs.get("forceDestroy"):
        for reference in site.state.users(bucket):
            if reference.user.type.removeprefix("gcp:") in _BUCKET_OBJECTS:
                site.state.remove(reference.user)
    elif written := folders.first_file(_objects(site, bucket)):
        raise RefusalError(
            "conflict",
            f"Error trying to delete bucket {bucket.id} containing objects without `force_destroy` set to "
            f"true: it holds {written}.",
            "Empty it, or set forceDestroy to true and run up before destroy.",
        )


def _bucket_deleted(site: Site, bucket: Record) -> None:
    folders.remove(_objects(site, bucket))


def _objects(site: Site, bucket: Record) -> Path:
    return folders.bucket(site.state.path.parent, bucket.id, "gs")


def _instance_created(site: Site, instance: Record) -> None:
    iam_delay.begin(site.state, str(instance.key))


def _instance_deleting(site: Site, instance: Record) -> None:
    """Databases and users are deleted with an instance; it holds private service access for days."""
    for token in ("sql/database:Database", "sql/user:User"):
        for one in list(site.users(instance, token)):
            site.state.remove(one)
    peering.hold(site, instance)


def _instance_deleted(site: Site, instance: Record) -> None:
    """A new instance of the same name starts empty."""
    folders.remove(folders.database(site.state.path.parent, instance.id))


def _files_deleted(kind: str) -> Callable[[Site, Record], None]:
    """Delete the files of a file system, stored below `kind`."""
    return lambda site, one: folders.remove(site.state.path.parent / kind / one.id)


def _user_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The id of a user has its host only where the database has hosts."""
    host = str(inputs.get("host") or "")
    return {"id": f"{inputs.get('name')}/{host}/{inputs.get('instance')}", "host": host}


HOOKS: Mapping[str, Hooks[Site]] = {
    "sql/databaseInstance:DatabaseInstance": Hooks(
        outputs=_instance_outputs,
        created=_instance_created,
        deleting=_instance_deleting,
        deleted=_instance_deleted,
    ),
    "sql/user:User": Hooks(outputs=_user_outputs),
    "filestore/instance:Instance": Hooks(outputs=_share_outputs, deleted=_files_deleted("filestore")),
    "lustre/instance:Instance": Hooks(deleted=_files_deleted("lustre")),
    "storage/bucket:Bucket": Hooks(deleting=_bucket_deleting, deleted=_bucket_deleted),
}
