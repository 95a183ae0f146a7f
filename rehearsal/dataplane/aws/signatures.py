"""Signatures of requests, checked by botocore's own signer (Signature Version 4).

S3 and the JSON services identify a caller by the key alone; this is for services whose requests are signed by
other programs than botocore's clients.
"""

import hashlib
import hmac
import importlib
import re
from typing import Any

from rehearsal.dataplane.aws.http import Request, ServiceError

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
_REFUSED = "The request signature we calculated does not match the signature you provided."


def access_key(request: Request) -> str:
    """Return the access key that signed a request; empty for another kind of signature."""
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    return found[1] if found else ""


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
        raise ServiceError("InvalidSignatureException", _REFUSED, 403)
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
        raise ServiceError("InvalidSignatureException", _REFUSED, 403)
