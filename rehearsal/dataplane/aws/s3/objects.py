"""Objects of emulated buckets: files in the bucket's folder, accessed with a caller's permissions."""

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.core.state import State
from rehearsal.dataplane import folders, object_files
from rehearsal.dataplane.aws.authorization import authorise, context_of, key_checks
from rehearsal.dataplane.aws.http import Readable, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.dataplane.aws.identity import OPERATOR, Caller
from rehearsal.dataplane.object_files import Found, UnkeepableError

BUCKETS = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")
_ENCRYPTION = (
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
)
_LONGEST_KEY = 1024  # bytes; source: Amazon S3 User Guide, "Naming Amazon S3 objects"


class Objects:
    """Access of a caller to the objects of any bucket. Every method raises ServiceError with S3's codes."""

    def __init__(self, state: State, caller: Caller = OPERATOR, region: str = "") -> None:
        self._state, self._caller, self._region = state, caller, region
        self._home = state.path.parent

    def list(self, bucket: str, prefix: str = "") -> list[Found]:
        """The objects whose key begins with `prefix`, in the byte order of S3."""
        return object_files.listed(self.authorised(bucket, "s3:ListBucket", prefix=prefix), prefix)

    def get(self, bucket: str, key: str) -> Found:
        """One object. Raises ServiceError NoSuchKey, AccessDenied, NoSuchBucket."""
        folder = self.authorised(bucket, "s3:GetObject", key)
        found = object_files.found(folder, key)
        if found is None:
            raise ServiceError("NoSuchKey", "The specified key does not exist.", 404)
        return found

    def put(self, bucket: str, key: str, body: Readable, check: Callable[[], object] = lambda: None) -> Found:
        """Write one object atomically; `check` may refuse it by an error once it has been read."""
        folder = self.place(bucket, key)
        with self.draft() as draft:
            with draft.open("wb") as file:
                shutil.copyfileobj(body, file, 1 << 20)
            check()
            return self.keep(folder, key, draft)

    def keep(self, folder: Path, key: str, draft: Path) -> Found:
        """Store a complete file as the object with this key."""
        try:
            return object_files.keep(folder, key, draft)
        except UnkeepableError as error:
            raise ServiceError("NotImplemented", str(error), 501) from None

    def place(self, bucket: str, key: str) -> Path:
        """The folder of a bucket. Raises ServiceError unless the caller may write an object with this key."""
        folder = self.authorised(bucket, "s3:PutObject", key)
        if not key or len(key.encode()) > _LONGEST_KEY:
            raise ServiceError("KeyTooLongError", "Your key is too long", 400)
        if not object_files.is_plain(key):
            raise ServiceError("NotImplemented", str(UnkeepableError(key)), 501)
        return folder

    def draft(self) -> contextlib.AbstractContextManager[Path]:
        """A temporary file for a new object; removed at the end."""
        return object_files.draft(self._home)

    def delete(self, bucket: str, key: str) -> None:
        """Delete one object, if present."""
        object_files.delete(self.authorised(bucket, "s3:DeleteObject", key), key)

    def authorised(self, bucket: str, action: str, key: str = "", prefix: str = "") -> Path:
        """The folder of a bucket. Raises ServiceError unless `action` on it or its object is allowed."""
        record = self._bucket(bucket)
        arn = f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
        context = {**context_of(self._region), **({} if key else {"s3:prefix": prefix})}
        # A caller without access does not learn whether the bucket exists.
        authorise(self._state, self._caller, [AccessCheck(action, arn, context)], "AccessDenied")
        if record is None:
            raise ServiceError("NoSuchBucket", "The specified bucket does not exist", 404)
        needed = {"s3:GetObject": ["kms:Decrypt"], "s3:PutObject": ["kms:GenerateDataKey"]}.get(action, [])
        encrypted_with = self._key(record) if needed else None
        if encrypted_with:
            checks = key_checks(self._state, encrypted_with, self._region, "s3", needed)
            authorise(self._state, self._caller, checks, "AccessDenied")
        return folders.bucket(self._home, bucket)

    def _bucket(self, name: str) -> Record | None:
        found = [one for token in BUCKETS for one in self._state.find(type=token, id=name)]
        return found[0] if found else None

    def _key(self, bucket: Record) -> str | None:
        """The default encryption key of a bucket, if it is customer managed."""
        path = "rules[0].applyServerSideEncryptionByDefault.kmsMasterKeyId"
        for token in _ENCRYPTION:
            for record in self._state.find(type=token):
                if record.inputs.get("bucket") in (bucket.id, bucket.outputs.get("arn")):
                    return _text(at(record.inputs, path))
        within = "serverSideEncryptionConfiguration.rule.applyServerSideEncryptionByDefault.kmsMasterKeyId"
        return _text(at(bucket.inputs, within))


def uri(text: str) -> tuple[str, str]:
    """Bucket and key (or prefix) of `s3://bucket/key`."""
    bucket, _, key = text.removeprefix("s3://").partition("/")
    return bucket, key


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
