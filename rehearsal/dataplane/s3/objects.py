"""The objects of emulated buckets: files in the bucket's folder, read and written with a caller's rights."""

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.dataplane.http import Readable, ServiceError
from rehearsal.dataplane.identity import OPERATOR, Caller
from rehearsal.dataplane.policies import Request as Check
from rehearsal.dataplane.rights import authorise, context_of, key_checks

BUCKETS = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")
_ENCRYPTION = (
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
)
_LONGEST_KEY = 1024  # bytes; source: Amazon S3 User Guide, "Naming Amazon S3 objects"
_LONGEST_NAME = 255  # bytes of one part of a path on this disk


@dataclass(frozen=True)
class Found:
    """One object; `etag` is the MD5 of its content, without quotes."""

    key: str
    path: Path
    size: int
    modified: datetime

    @property
    def etag(self) -> str:
        """The MD5 of the content, as S3 has it of what was uploaded in one part."""
        return _digest(self.path)


class Objects:
    """What a caller may do with the objects of any bucket. Every method raises ServiceError in S3's words."""

    def __init__(self, state: State, caller: Caller = OPERATOR, region: str = "") -> None:
        self._state, self._caller, self._region = state, caller, region
        self._home = state.path.parent

    def list(self, bucket: str, prefix: str = "") -> list[Found]:
        """The objects whose key begins with `prefix`, in the order of S3 (by the bytes of their keys)."""
        folder = self.authorised(bucket, "s3:ListBucket", prefix=prefix)
        start = folder / prefix.rpartition("/")[0] if _is_plain(prefix.rpartition("/")[0]) else folder
        keys = [str(path.relative_to(folder)) for path in _files(start)]
        wanted = sorted((key for key in keys if key.startswith(prefix)), key=os.fsencode)
        return [found for key in wanted if (found := _found(folder, key))]

    def get(self, bucket: str, key: str) -> Found:
        """One object. Raises ServiceError NoSuchKey, AccessDenied, NoSuchBucket."""
        folder = self.authorised(bucket, "s3:GetObject", key)
        found = _found(folder, key) if _is_plain(key) else None
        if found is None:
            raise ServiceError("NoSuchKey", "The specified key does not exist.", 404)
        return found

    def put(self, bucket: str, key: str, body: Readable, check: Callable[[], object] = lambda: None) -> Found:
        """Write one object, whole or not at all; `check` may refuse it by an error once it has been read."""
        folder, target = self.place(bucket, key)
        with self.draft() as draft:
            with draft.open("wb") as file:
                shutil.copyfileobj(body, file, 1 << 20)
            check()
            return self.keep(folder, key, target, draft)

    def keep(self, folder: Path, key: str, target: Path, draft: Path) -> Found:
        """Make a file that is complete the object with this key."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(target)
        except OSError:  # a file where a folder would have to be, or a folder where the file would be
            raise ServiceError("NotImplemented", _unkeepable(key), 501) from None
        found = _found(folder, key)
        assert found is not None
        return found

    def place(self, bucket: str, key: str) -> tuple[Path, Path]:
        """The folder of a bucket and where in it an object would lie that the caller may write."""
        folder = self.authorised(bucket, "s3:PutObject", key)
        return folder, _place(folder, key)

    @contextlib.contextmanager
    def draft(self) -> Iterator[Path]:
        """A file beside the buckets for an object to be; what is left of it at the end is removed."""
        path = self._home / "s3-drafts" / secrets.token_hex(8)
        path.parent.mkdir(exist_ok=True)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def delete(self, bucket: str, key: str) -> None:
        """Delete one object; silent when there is none."""
        folder = self.authorised(bucket, "s3:DeleteObject", key)
        if not _is_plain(key):
            return
        with contextlib.suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            (folder / key).unlink()
        for parent in (folder / key).parents:  # a folder is no object: an empty one is nothing
            if parent == folder:
                return
            try:
                parent.rmdir()
            except OSError:
                return

    def authorised(self, bucket: str, action: str, key: str = "", prefix: str = "") -> Path:
        """The folder of a bucket, where the caller may do `action` on it or on one of its objects."""
        record = self._bucket(bucket)
        arn = f"arn:aws:s3:::{bucket}" + (f"/{key}" if key else "")
        context = {**context_of(self._region), **({} if key else {"s3:prefix": prefix})}
        # Who may do nothing with a bucket does not hear whether it exists.
        authorise(self._state, self._caller, [Check(action, arn, context)], "AccessDenied")
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
        """The customer's key with which a bucket encrypts what comes without another one."""
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


def common_prefixes(found: Iterable[Found], prefix: str, delimiter: str) -> tuple[list[Found], Sequence[str]]:
    """The objects directly below a prefix, and the prefixes under which the others lie."""
    plain, groups = [], dict[str, None]()
    for one in found:
        rest, separator, _ = one.key[len(prefix) :].partition(delimiter)
        if separator:
            groups[prefix + rest + delimiter] = None
        else:
            plain.append(one)
    return plain, list(groups)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _place(folder: Path, key: str) -> Path:
    if not key or len(key.encode()) > _LONGEST_KEY:
        raise ServiceError("KeyTooLongError", "Your key is too long", 400)
    if not _is_plain(key):
        raise ServiceError("NotImplemented", _unkeepable(key), 501)
    return folder / key


def _is_plain(key: str) -> bool:
    """Whether a key is a path of files here: no part is empty, and none means another folder."""
    parts = key.split("/")
    return (
        not any(part in ("", ".", "..") or len(part.encode()) > _LONGEST_NAME for part in parts)
        and "\0" not in key
    )


def _unkeepable(key: str) -> str:
    return f"A rehearsal keeps objects as files, and {key!r} cannot be one beside those that are there."


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)


def _found(folder: Path, key: str) -> Found | None:
    path = folder / key
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):  # written by a program that removed it meanwhile
        return None
    if not path.is_file():
        return None
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return Found(key, path, status.st_size, modified)


_digests: dict[tuple[str, int, int, int], str] = {}


def _digest(path: Path) -> str:
    """The MD5 of a file, computed once for each of its contents."""
    status = path.stat()
    known = (str(path), status.st_ino, status.st_mtime_ns, status.st_size)
    if known not in _digests:
        if len(_digests) > 10_000:
            _digests.clear()
        with path.open("rb") as file:
            _digests[known] = hashlib.file_digest(
                file, lambda: hashlib.md5(usedforsecurity=False)
            ).hexdigest()
    return _digests[known]
