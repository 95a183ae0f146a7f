"""Objects of programs as files, and deletion of buckets with the objects of programs, pods and jobs.

Source: Amazon S3 API Reference, DeleteBucket; hashicorp/terraform-provider-aws internal/service/s3/bucket.go
(resourceBucketDelete: `force_destroy` empties a bucket that is not empty).
"""

import base64
from collections.abc import Mapping
from pathlib import Path

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Record, RefusalError
from rehearsal.dataplane import assets, folders

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


def _put(site: Site, made: Record) -> None:
    """Write the object of a program as a file, like those of pods and jobs, unless its key is no path."""
    text, encoded, source = (made.inputs.get(name) for name in ("content", "contentBase64", "source"))
    try:
        data = base64.b64decode(encoded) if encoded else str(text or "").encode()
        if isinstance(source, dict):
            data = assets.content(source)
        file = _file(site, made)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    except (OSError, ValueError, assets.AssetError) as error:
        site.call.log("info", f"{made.id} has no content in this rehearsal: {error}")


def _forget(site: Site, gone: Record) -> None:
    file = _file(site, gone)
    if file is not None and file.is_file():
        file.unlink()


def _file(site: Site, made: Record) -> Path | None:
    """Path of an object; None for a key outside of its bucket."""
    bucket = folders.bucket(site.state.path.parent, str(made.outputs.get("bucket")))
    file = bucket / str(made.outputs.get("key"))
    return file if ".." not in file.relative_to(bucket).parts else None


_OBJECT: Hooks[Site] = Hooks(created=_put, changed=_put, deleted=_forget)
HOOKS: Mapping[str, Hooks[Site]] = {
    "s3/bucket:Bucket": Hooks(deleting=_deleting, deleted=_deleted),
    "s3/bucketObject:BucketObject": _OBJECT,
    "s3/bucketObjectv2:BucketObjectv2": _OBJECT,
}
