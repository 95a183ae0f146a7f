"""What is in a bucket when it is deleted: objects of the program, and those that pods wrote.

Source: Amazon S3 API Reference, DeleteBucket; hashicorp/terraform-provider-aws internal/service/s3/bucket.go
(resourceBucketDelete: `force_destroy` empties a bucket that is not empty).
"""

from collections.abc import Mapping
from pathlib import Path

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Record, RefusalError
from rehearsal.dataplane import folders

_OBJECTS = ("aws:s3/bucketObject:BucketObject", "aws:s3/bucketObjectv2:BucketObjectv2")


def _deleting(site: Site, bucket: Record) -> None:
    if bucket.outputs.get("forceDestroy"):
        for use in site.state.users(bucket):
            if use.user.type in _OBJECTS:
                site.state.remove(use.user)
    elif written := folders.first_file(_folder(site, bucket)):
        raise RefusalError(
            "BucketNotEmpty",
            f"The bucket you tried to delete is not empty: {bucket.id} holds {written}.",
            "Empty it, or set forceDestroy to true and run up before destroy.",
        )


def _deleted(site: Site, bucket: Record) -> None:
    folders.remove(_folder(site, bucket))


def _folder(site: Site, bucket: Record) -> Path:
    return folders.bucket(site.state.path.parent, bucket.id)


HOOKS: Mapping[str, Hooks[Site]] = {"s3/bucket:Bucket": Hooks(deleting=_deleting, deleted=_deleted)}
