"""The REST API of S3: objects, lists and multipart uploads; other requests raise a NotImplemented error.

Source: Amazon S3 API Reference; User Guide, "Virtual hosting of general purpose buckets" (the place of the
bucket name). Not emulated: versions, metadata of objects, policies of buckets, conditional writes.
"""

import base64
import re
from collections.abc import Mapping
from email.utils import format_datetime
from urllib.parse import quote, unquote

from rehearsal.core.state import State
from rehearsal.dataplane.aws.http import FilePart, Request, Response, ServiceError
from rehearsal.dataplane.aws.s3 import xml
from rehearsal.dataplane.aws.s3.checksums import Checked
from rehearsal.dataplane.aws.s3.objects import Objects
from rehearsal.dataplane.aws.s3.uploads import Uploads
from rehearsal.dataplane.object_files import Found, common_prefixes

_HOST = re.compile(r"(?P<bucket>[a-z0-9][a-z0-9.-]+?)\.(?:s3[.-][^:]+\.amazonaws\.com|localhost)(?::\d+)?")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_MOST_KEYS = 1000
# Requests for an object that do not concern its content.
_OTHERS = frozenset(
    {"acl", "tagging", "attributes", "retention", "legal-hold", "torrent", "restore", "select"}
)


class S3:
    """See `http.Service`."""

    def __init__(self, state: State) -> None:
        self._state, self._uploads = state, Uploads(state.path.parent)

    def answer(self, request: Request) -> Response:
        """See `http.Service`."""
        bucket, key = _address(request)
        objects = Objects(self._state, request.caller, request.region)
        if not bucket:
            raise _unknown(request, "the service itself")
        return self._of_object(request, objects, bucket, key) if key else _of_bucket(request, objects, bucket)

    def refusal(self, error: ServiceError) -> Response:
        """See `http.Service`."""
        return xml.error(error)

    def _of_object(self, request: Request, objects: Objects, bucket: str, key: str) -> Response:
        query = request.query
        if query.keys() & {"uploads", "uploadId"}:
            return self._of_upload(request, objects, bucket, key)
        if not query.keys() & _OTHERS:
            if request.method in ("GET", "HEAD"):
                return _content(objects.get(bucket, key), request.headers.get("range"))
            if request.method == "PUT":
                return _put(request, objects, bucket, key)
            if request.method == "DELETE":
                objects.delete(bucket, key)
                return Response(204)
        raise _unknown(request, "objects")

    def _of_upload(self, request: Request, objects: Objects, bucket: str, key: str) -> Response:
        upload = request.query.get("uploadId", "")
        match request.method:
            case "POST" if not upload:
                return self._uploads.create(objects, bucket, key)
            case "PUT":
                return self._uploads.part(objects, bucket, key, request.query, _checked(request))
            case "POST":
                numbers = xml.texts(request.body.read(), "Part/PartNumber")
                return self._uploads.complete(objects, bucket, key, upload, numbers)
            case "DELETE":
                return self._uploads.abort(objects, bucket, key, upload)
        raise _unknown(request, "uploads")


def _of_bucket(request: Request, objects: Objects, bucket: str) -> Response:
    query = request.query
    if request.method == "HEAD":
        objects.authorised(bucket, "s3:ListBucket")
        return Response(200, headers={"x-amz-bucket-region": request.region})
    if request.method == "GET" and "location" in query:
        objects.authorised(bucket, "s3:GetBucketLocation")
        place = "" if request.region == "us-east-1" else request.region
        text = f'<LocationConstraint xmlns="{xml.NAMESPACE}">{place}</LocationConstraint>'
        return Response(200, text.encode(), {"Content-Type": "application/xml"})
    if request.method == "GET" and query.get("list-type") == "2":
        return _listed(objects, bucket, query)
    if request.method == "POST" and "delete" in query:
        return _delete_many(request, objects, bucket)
    raise _unknown(request, "buckets")


def _listed(objects: Objects, bucket: str, query: Mapping[str, str]) -> Response:
    """ListObjectsV2: keys and common prefixes share order and limit."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    found = objects.list(bucket, prefix)
    plain, groups = common_prefixes(found, prefix, delimiter) if delimiter else (found, [])
    rows: dict[str, Found | None] = {**{one.key: one for one in plain}, **dict.fromkeys(groups)}
    token = query.get("continuation-token", "")
    after = _untoken(token) if token else query.get("start-after", "")
    names = sorted((name for name in rows if name > after), key=str.encode)
    most = min(int(query.get("max-keys") or _MOST_KEYS), _MOST_KEYS)
    page, more = names[:most], len(names) > most
    shown = quote if query.get("encoding-type") == "url" else str
    contents = [("Contents", _row(one, shown(one.key))) for name in page if (one := rows[name])]
    prefixes = [("CommonPrefixes", [("Prefix", shown(name))]) for name in page if rows[name] is None]
    return xml.document(
        "ListBucketResult",
        [
            ("Name", bucket),
            ("Prefix", shown(prefix)),
            ("Delimiter", shown(delimiter) or None),
            ("EncodingType", query.get("encoding-type")),
            ("KeyCount", len(page)),
            ("MaxKeys", most),
            ("IsTruncated", more),
            ("ContinuationToken", token or None),
            ("NextContinuationToken", _token(page[-1]) if more and page else None),
            ("StartAfter", query.get("start-after")),
            *contents,
            *prefixes,
        ],
    )


def _row(found: Found, key: str) -> list[tuple[str, object]]:
    return [
        ("Key", key),
        ("LastModified", xml.timestamp(found.modified)),
        ("ETag", f'"{found.etag}"'),
        ("Size", found.size),
        ("StorageClass", "STANDARD"),
    ]


def _content(found: Found, wanted: str | None) -> Response:
    """GetObject and HeadObject, for a range of the object if the request has one."""
    headers = {
        "ETag": f'"{found.etag}"',
        "Last-Modified": format_datetime(found.modified, usegmt=True),
        "Content-Type": "binary/octet-stream",
        "Accept-Ranges": "bytes",
    }
    match = _RANGE.fullmatch(wanted or "")
    if match is None or not (match[1] or match[2]):
        return Response(200, FilePart(found.path, 0, found.size), headers)
    first = int(match[1]) if match[1] else max(0, found.size - int(match[2]))
    last = min(int(match[2]), found.size - 1) if match[1] and match[2] else found.size - 1
    if first > last:
        raise ServiceError("InvalidRange", "The requested range is not satisfiable", 416)
    headers["Content-Range"] = f"bytes {first}-{last}/{found.size}"
    return Response(206, FilePart(found.path, first, last - first + 1), headers)


def _put(request: Request, objects: Objects, bucket: str, key: str) -> Response:
    source = request.headers.get("x-amz-copy-source")
    if source:
        origin, _, name = unquote(source).lstrip("/").partition("/")
        with objects.get(origin, name.partition("?versionId=")[0]).path.open("rb") as file:
            found = objects.put(bucket, key, file)
        rows = [("ETag", f'"{found.etag}"'), ("LastModified", xml.timestamp(found.modified))]
        return xml.document("CopyObjectResult", rows)
    body = _checked(request)
    found = objects.put(bucket, key, body, body.compare)
    return Response(200, headers={"ETag": f'"{found.etag}"', **body.compare()})


def _delete_many(request: Request, objects: Objects, bucket: str) -> Response:
    rows: list[tuple[str, object]] = []
    for key in xml.texts(request.body.read(), "Object/Key"):
        try:
            objects.delete(bucket, key)
            rows.append(("Deleted", [("Key", key)]))
        except ServiceError as error:
            rows.append(("Error", [("Key", key), ("Code", error.code), ("Message", error.message)]))
    return xml.document("DeleteResult", rows)


def _checked(request: Request) -> Checked:
    return Checked(request.body, request.headers)


def _address(request: Request) -> tuple[str, str]:
    path = unquote(request.path).removeprefix("/")
    match = _HOST.fullmatch(request.headers.get("host", ""))
    if match:
        return match["bucket"], path
    bucket, _, key = path.partition("/")
    return bucket, key


def _token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _untoken(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token).decode()
    except ValueError:
        message = "The continuation token provided is incorrect"
        raise ServiceError("InvalidArgument", message) from None


def _unknown(request: Request, what: str) -> ServiceError:
    text = f"{request.method} of {what} with {sorted(request.query)}"
    return ServiceError("NotImplemented", f"A rehearsal does not emulate this request of S3: {text}", 501)
