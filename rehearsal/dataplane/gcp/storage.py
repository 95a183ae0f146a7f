"""Cloud Storage's JSON API: objects.get, list, insert, delete, and buckets.get.

Source: Cloud Storage JSON API v1 reference (paths, parameters, "HTTP status and error codes"); Cloud Storage
documentation, "Uploads and downloads" (media and multipart), "Request preconditions". Objects are files below
the bucket's folder, so a machine that mounts a bucket sees the same ones.
"""

import base64
import email
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane import folders, object_files
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Content, Method, ServiceError
from rehearsal.dataplane.gcp.iam_bindings import allowed_object
from rehearsal.dataplane.object_files import Found, UnkeepableError

BUCKET = "gcp:storage/bucket:Bucket"
_MOST_LISTED = 1000  # objects of a page
_REASONS = {400: "invalid", 401: "required", 403: "forbidden", 404: "notFound", 412: "conditionNotMet"}


class CloudStorage:
    """See `http.Api`."""

    def __init__(self, state: State) -> None:
        self._state, self._home = state, state.path.parent

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        bucket = r"storage/v1/b/(?P<bucket>[^/]+)"
        return (
            Method("GET", bucket, self._bucket),
            Method("GET", f"{bucket}/o", self._list),
            Method("GET", f"{bucket}/o/(?P<object>.+)", self._get),
            # Google's own library reads content there.
            Method("GET", f"download/{bucket}/o/(?P<object>.+)", self._get),
            Method("DELETE", f"{bucket}/o/(?P<object>.+)", self._delete),
            Method("POST", r"upload/storage/v1/b/(?P<bucket>[^/]+)/o", self._insert),
        )

    def _bucket(self, call: ApiCall) -> Answer:
        bucket = self._authorised(call, "storage.buckets.get")
        return {"kind": "storage#bucket", "id": bucket.id, "name": bucket.id}

    def _list(self, call: ApiCall) -> Answer:
        prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
        bucket = self._authorised(call, "storage.objects.list", prefix)
        found: Sequence[Found] = object_files.listed(folders.bucket(self._home, bucket.id, "gs"), prefix)
        groups: Sequence[str] = ()
        if delimiter:
            found, groups = object_files.common_prefixes(found, prefix, delimiter)
        after = base64.urlsafe_b64decode(call.query.get("pageToken", "")).decode()
        rest = [one for one in found if one.key > after]
        most = min(int(call.query.get("maxResults") or _MOST_LISTED), _MOST_LISTED)
        answer: dict[str, Any] = {"kind": "storage#objects"}
        if page := rest[:most]:
            answer["items"] = [_shown(bucket, one) for one in page]
        if groups and not after:
            answer["prefixes"] = list(groups)
        if len(rest) > most:
            answer["nextPageToken"] = base64.urlsafe_b64encode(page[-1].key.encode()).decode()
        return answer

    def _get(self, call: ApiCall) -> Answer | Content:
        bucket, found = self._found(call, "storage.objects.get")
        return Content(found.path.read_bytes()) if call.query.get("alt") == "media" else _shown(bucket, found)

    def _delete(self, call: ApiCall) -> Content:
        bucket, found = self._found(call, "storage.objects.delete")
        object_files.delete(folders.bucket(self._home, bucket.id, "gs"), found.key)
        return Content(b"", status=204)

    def _insert(self, call: ApiCall) -> Answer:
        name, content = _upload(call)
        bucket = self._authorised(call, "storage.objects.create", name)
        folder = folders.bucket(self._home, bucket.id, "gs")
        before = object_files.found(folder, name)
        if before is not None:
            if call.query.get("ifGenerationMatch") == "0":
                raise _refused(412, "At least one of the pre-conditions you specified did not hold.")
            # Replacing an object deletes it ("Object versioning", "Uploads").
            self._authorised(call, "storage.objects.delete", name)
        if not object_files.is_plain(name):
            raise _refused(400, str(UnkeepableError(name)))
        with object_files.draft(self._home) as draft:
            draft.write_bytes(content)
            try:
                return _shown(bucket, object_files.keep(folder, name, draft))
            except UnkeepableError as error:
                raise _refused(400, str(error)) from None

    def _found(self, call: ApiCall, permission: str) -> tuple[Record, Found]:
        name = call.parts["object"]
        bucket = self._authorised(call, permission, name)
        found = object_files.found(folders.bucket(self._home, bucket.id, "gs"), name)
        if found is None:
            raise _refused(404, f"No such object: {bucket.id}/{name}")
        return bucket, found

    def _authorised(self, call: ApiCall, permission: str, name: str = "") -> Record:
        """The bucket of a request. Raises ServiceError unless the caller has the permission."""
        wanted = call.parts["bucket"]
        bucket = next((one for one in self._state.find(type=BUCKET) if one.id == wanted), None)
        if bucket is None:
            raise _refused(404, "The specified bucket does not exist.")
        if not allowed_object(self._state, call.caller.members, permission, bucket, name):
            what = f"object {wanted}/{name}" if name else f"bucket {wanted}"
            raise _refused(
                403,
                f"{call.caller.name} does not have {permission} access to the Google Cloud Storage {what}. "
                f"Permission '{permission}' denied on resource (or it may not exist).",
            )
        return bucket


def _upload(call: ApiCall) -> tuple[str, bytes]:
    """Name and content of an upload in one request (media or multipart)."""
    kind = call.query.get("uploadType")
    if kind == "media":
        return call.query.get("name", ""), call.content
    if kind != "multipart":
        raise _refused(400, f"A rehearsal supports uploads of the types media and multipart, not {kind}.")
    head = f"Content-Type: {call.headers.get('content-type', '')}\r\n\r\n".encode()
    message = email.message_from_bytes(head + call.content)
    parts = [part.get_payload(decode=True) for part in message.walk() if not part.is_multipart()]
    if len(parts) != 2:
        raise _refused(400, "A multipart upload has two parts: the object's metadata, and its content.")
    metadata, content = (part if isinstance(part, bytes) else b"" for part in parts)
    named: Mapping[str, Any] = json.loads(metadata or b"{}")
    return str(named.get("name") or call.query.get("name", "")), content


def _shown(bucket: Record, found: Found) -> Answer:
    content = found.path.read_bytes()
    moment = found.modified.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    generation = str(int(found.modified.timestamp() * 1e6))
    return {
        "kind": "storage#object",
        "id": f"{bucket.id}/{found.key}/{generation}",
        "name": found.key,
        "bucket": bucket.id,
        "generation": generation,
        "metageneration": "1",
        "size": str(found.size),
        "md5Hash": base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode(),
        "timeCreated": moment,
        "updated": moment,
    }


def _refused(status: int, message: str) -> ServiceError:
    row = {"message": message, "domain": "global", "reason": _REASONS[status]}
    return ServiceError(status, message, more={"errors": [row]})
