"""XML documents of S3."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as Tree

from rehearsal.dataplane.aws.http import Response, ServiceError

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_KIND = {"Content-Type": "application/xml"}
Rows = Iterable[tuple[str, Any]]


def document(name: str, rows: Rows, status: int = 200) -> Response:
    """A document; a value that is a list of pairs is an element with children, None is left out."""
    root = Tree.Element(name, {} if name == "Error" else {"xmlns": NAMESPACE})
    _fill(root, rows)
    text = b'<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root)
    return Response(status, text, _KIND)


def error(refusal: ServiceError) -> Response:
    """An error document; for a HEAD request only the status."""
    return document("Error", [("Code", refusal.code), ("Message", refusal.message)], refusal.status)


def timestamp(when: datetime) -> str:
    """A time in the format of S3's XML."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def texts(content: bytes, path: str) -> list[str]:
    """The texts at a path of a document from a client, without namespaces. Raises ServiceError."""
    # Entities allow attacks; no client of S3 sends a document type.
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ServiceError("MalformedXML", "The XML you provided was not well-formed.")
    try:
        root = Tree.fromstring(content)  # noqa: S314 - no entities, see above
    except Tree.ParseError:
        raise ServiceError("MalformedXML", "The XML you provided was not well-formed.") from None
    return [one.text or "" for one in root.iterfind("/".join(f"{{*}}{part}" for part in path.split("/")))]


def _fill(parent: Tree.Element, rows: Rows) -> None:
    for name, value in rows:
        if value is None:
            continue
        child = Tree.SubElement(parent, name)
        if isinstance(value, list):
            _fill(child, value)
        elif isinstance(value, bool):
            child.text = str(value).lower()
        else:
            child.text = str(value)
