"""Objects of Cloud Storage by its JSON API, with the permissions of this machine.

Standard library only, as in `smoke_training.record.gcp.api`. Source: Cloud Storage JSON API v1, objects.list,
get, insert, delete; Cloud Storage documentation, "Retry strategy" (408, 429 and 5xx).
"""

import base64
import hashlib
import http.client
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlencode

from smoke_training.record.gcp.api import authorization

ATTEMPTS, TIMEOUT_S = 6, 60.0
_TEMPORARY = (408, 429)
_BLOCK = 1 << 20
T = TypeVar("T")


class ObjectError(OSError):
    """An object cannot be read, written or deleted; `status` is that of the response, 0 without one."""

    def __init__(self, what: str, status: int, why: str) -> None:
        super().__init__(f"{what}: {f'status {status}: ' if status else ''}{why}")
        self.status = status


@dataclass(frozen=True)
class StoredObject:
    """An object as `objects.list` describes it; `md5` is empty for composed objects."""

    name: str
    size: int
    md5: str


@dataclass(frozen=True)
class FileHead:
    """The first bytes of an open file: what is appended later is not part of it."""

    file: IO[bytes]
    size: int

    def __iter__(self) -> Iterator[bytes]:
        """Read from the beginning; where the file was cut meanwhile, zeros fill the announced size."""
        self.file.seek(0)
        left = self.size
        while left:
            block = self.file.read(min(left, _BLOCK)) or bytes(min(left, _BLOCK))
            left -= len(block)
            yield block


class Bucket:
    """Objects of one bucket. Methods raise ObjectError.

    Requests are sent up to `ATTEMPTS` times; `TIMEOUT_S` is that of each response of a server.
    """

    def __init__(self, name: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self.name, self._sleep = name, sleep
        # Google's own library reads another address from it.
        self._api = (os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com").rstrip("/")

    def listed(self, prefix: str) -> Iterator[StoredObject]:
        """The objects below a prefix. A role on a managed folder permits no list without its prefix."""
        token: str | None = ""
        while token is not None:
            query = {"prefix": prefix, "fields": "items(name,size,md5Hash),nextPageToken"}
            page = self._json("GET", f"o?{urlencode({**query, **({'pageToken': token} if token else {})})}")
            for one in page.get("items") or ():
                yield StoredObject(str(one["name"]), int(one["size"]), str(one.get("md5Hash") or ""))
            token = page.get("nextPageToken")

    def read(self, found: StoredObject, path: Path) -> None:
        """Write an object to a file, which appears when it is complete."""
        draft = path.with_name(f".{path.name}.trainstack-part")

        def copied(answer: IO[bytes]) -> None:
            with draft.open("wb") as file:
                shutil.copyfileobj(answer, file, _BLOCK)
            if draft.stat().st_size != found.size:
                raise http.client.IncompleteRead(b"")

        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._sent("GET", f"{self._one(found.name)}?alt=media", copied)
            with draft.open("rb") as file:
                md5 = digest(FileHead(file, found.size))
            if found.md5 and found.md5 != md5:
                raise ObjectError(self._uri(found.name), 0, "its content has another MD5 digest")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def write(self, path: Path, name: str) -> bool:
        """Write a file, as long as it is at first, to an object; False where its content changed meanwhile.

        Raises FileNotFoundError for one that is gone, and reads one to its end that goes later.
        """
        with path.open("rb") as file:
            part = FileHead(file, os.fstat(file.fileno()).st_size)
            before = digest(part)
            return self.put(part, name) == before

    def put(self, part: FileHead, name: str) -> str:
        """Write an object and return the MD5 digest of what the service received; see `digest`."""
        query = urlencode({"uploadType": "media", "name": name})
        return str(self._json("POST", f"o?{query}", part, root="upload/storage").get("md5Hash"))

    def delete(self, name: str) -> None:
        """Delete an object; one that does not exist is no error."""
        try:
            self._sent("DELETE", self._one(name), lambda answer: answer.read())
        except ObjectError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def _one(self, name: str) -> str:
        return f"o/{quote(name, safe='')}"

    def _uri(self, name: str) -> str:
        return f"gs://{self.name}/{name}"

    def _json(
        self,
        verb: str,
        path: str,
        content: FileHead | None = None,
        root: str = "storage",
    ) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._sent(verb, path, json.load, content=content, root=root)
        return found

    def _sent(
        self,
        verb: str,
        path: str,
        read: Callable[[IO[bytes]], T],
        *,
        content: FileHead | None = None,
        root: str = "storage",
    ) -> T:
        """Read the response of a request, which is repeated while the service is busy or silent."""
        what, url = f"{verb} gs://{self.name}", f"{self._api}/{root}/v1/b/{self.name}/{path}"
        for left in reversed(range(ATTEMPTS)):
            try:
                return self._once(verb, url, read, content)
            except urllib.error.HTTPError as error:
                why = error.read(500).decode(errors="replace")
                if not left or (error.code < 500 and error.code not in _TEMPORARY):
                    raise ObjectError(f"{what}/{path.partition('?')[0]}", error.code, why) from error
            except (OSError, http.client.HTTPException) as error:
                if not left or isinstance(error, ObjectError):
                    raise ObjectError(what, 0, str(error)) from error
            self._sleep(2.0 ** (ATTEMPTS - 1 - left))
        raise AssertionError("unreachable")

    def _once(self, verb: str, url: str, read: Callable[[IO[bytes]], T], content: FileHead | None) -> T:
        own = dict(authorization(TIMEOUT_S))
        if content is not None:
            own |= {"Content-Type": "application/octet-stream", "Content-Length": str(content.size)}
        body = None if content is None else iter(content)
        sent = urllib.request.Request(url, body, own, method=verb)  # noqa: S310 - the address above
        with urllib.request.urlopen(sent, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return read(answer)


def digest(part: FileHead) -> str:
    """MD5 digest in base64, as the service gives it."""
    found = hashlib.md5(usedforsecurity=False)
    for block in part:
        found.update(block)
    return base64.b64encode(found.digest()).decode()
