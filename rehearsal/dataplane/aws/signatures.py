"""Signatures of requests, checked by botocore's own signer (Signature Version 4).

S3 and the JSON services identify a caller by the key alone; this is for services whose requests are signed by
other programs than botocore's clients.
"""

import hashlib
import hmac
import importlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from rehearsal.dataplane.aws.http import Request, ServiceError

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
REFUSED = "The request signature we calculated does not match the signature you provided."


def access_key(request: Request) -> str:
    """Return the access key that signed a request; empty for another kind of signature."""
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    return found[1] if found else ""


def is_presigned_by(url: str, headers: Mapping[str, str], secret: str) -> bool:
    """Return whether the signature in the query of a GET was made with this secret.

    `headers`: by name in lower case, `host` included. Raises ValueError for an address without a signature.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    try:
        given, names = query.pop("X-Amz-Signature"), query["X-Amz-SignedHeaders"].split(";")
        key, _, region, service, _ = query["X-Amz-Credential"].split("/")
        stamp = query["X-Amz-Date"]
        signed = {name: headers[name] for name in {"host", *names}}
    except KeyError as error:
        raise ValueError(f"{error} is missing") from None
    auth: Any = importlib.import_module("botocore.auth")
    text = urlencode(sorted(query.items()), quote_via=quote, safe="-_.~")
    made: Any = importlib.import_module("botocore.awsrequest").AWSRequest(
        method="GET",
        url=f"{parts.scheme}://{signed.pop('host')}{parts.path or '/'}?{text}",
        headers=signed,
    )
    made.context["timestamp"] = stamp
    credentials: Any = importlib.import_module("botocore.credentials").Credentials(key, secret)
    signer = auth.SigV4Auth(credentials, service, region)
    canonical = signer.canonical_request(made)
    return hmac.compare_digest(signer.signature(signer.string_to_sign(made, canonical), made), given)


def check(request: Request, content: bytes, secret: str) -> None:
    """Raise ServiceError unless the request with this body was signed with the secret of its access key."""
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if found is None:
        raise ServiceError("IncompleteSignatureException", "the Authorization header is incomplete", 403)
    key, region, service, names, signature = found.groups()
    signed = {name: request.headers.get(name, "") for name in names.split(";")}
    digest = request.headers.get("x-amz-content-sha256")
    wanted = {"host", "x-amz-date"} | {name for name in request.headers if name.startswith("x-amz-")}
    if not wanted <= signed.keys() or digest not in (None, hashlib.sha256(content).hexdigest()):
        raise ServiceError("InvalidSignatureException", REFUSED, 403)
    auth: Any = importlib.import_module("botocore.auth")
    query = f"?{request.query_text}" if request.query_text else ""
    made: Any = importlib.import_module("botocore.awsrequest").AWSRequest(
        method=request.method,
        url=f"http://{signed.pop('host')}{request.path}{query}",
        headers=signed,
        data=content,
    )
    made.context["timestamp"] = request.headers.get("x-amz-date", "")
    credentials: Any = importlib.import_module("botocore.credentials").Credentials(key, secret)
    signer = auth.SigV4Auth(credentials, service, region)
    text = signer.string_to_sign(made, signer.canonical_request(made))
    if not hmac.compare_digest(signer.signature(text, made), signature):
        raise ServiceError("InvalidSignatureException", REFUSED, 403)
