"""Requests to AWS with the role of a machine: its keys, and signature version 4.

Source: EC2 User Guide, "Use IMDSv2"; IAM User Guide, "Create a signed AWS API request". A variable of AWS's
own tools (AWS_CONTAINER_CREDENTIALS_FULL_URI with its token file) replaces the metadata service.
"""

import datetime
import hashlib
import hmac
import json
import os
import threading
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

UNSIGNED = "UNSIGNED-PAYLOAD"
"""Digest of a body that is not read before it is sent (S3 alone takes it)."""
_METADATA = "http://169.254.169.254/latest"
_TIMEOUT_S, _TOKEN_S = 5.0, 300
_EARLY = datetime.timedelta(minutes=5)


class MachineKeys:
    """Keys of the machine's role, renewed before they expire; for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Mapping[str, str] = {}

    def current(self) -> Mapping[str, str]:
        """AccessKeyId, SecretAccessKey, Token. Raises OSError, and ValueError or KeyError for no keys."""
        with self._lock:
            if not self._known or _now() > _expiry(self._known) - _EARLY:
                self._known = _keys()
            return self._known


def _keys() -> Mapping[str, str]:
    if place := os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        token = Path(os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text(encoding="utf-8")
        return dict(json.loads(_read(place, {"Authorization": token.strip()})))
    wanted = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_S)}
    headers = {"X-aws-ec2-metadata-token": _read(f"{_METADATA}/api/token", wanted, "PUT")}
    place = f"{_METADATA}/meta-data/iam/security-credentials/"
    role = _read(place, headers).strip()
    return dict(json.loads(_read(place + role, headers)))


def signed(
    keys: Mapping[str, str],
    method: str,
    url: str,
    place: tuple[str, str],
    *,
    digest: str,
    headers: Mapping[str, str],
) -> dict[str, str]:
    """The headers of a request, signature included; `place` is region and service.

    The path in `url` is quoted once. S3 signs it as it is, other services quote it again.
    """
    (region, service), parts, at = place, urllib.parse.urlsplit(url), _now()
    stamp = f"{at:%Y%m%dT%H%M%SZ}"
    known = {
        **{name.lower(): value for name, value in headers.items()},
        "host": parts.netloc,
        "x-amz-content-sha256": digest,
        "x-amz-date": stamp,
        "x-amz-security-token": keys["Token"],
    }
    path = parts.path or "/"
    path = path if service == "s3" else urllib.parse.quote(path, safe="/-_.~")
    pairs = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
    quoted = sorted((_quoted(key), _quoted(value)) for key, value in pairs)
    names = ";".join(sorted(known))
    lines = "".join(f"{name}:{' '.join(known[name].split())}\n" for name in sorted(known))
    query = "&".join(f"{key}={value}" for key, value in quoted)
    request = "\n".join((method, path, query, lines, names, digest))
    scope = f"{at:%Y%m%d}/{region}/{service}/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{keys['SecretAccessKey']}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={keys['AccessKeyId']}/{scope}"
    known["authorization"] = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
    return known


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="-_.~")


def _read(url: str, headers: Mapping[str, str], method: str = "GET") -> str:
    asked = urllib.request.Request(url, headers=dict(headers), method=method)  # noqa: S310 - of this program
    # Never by a proxy of the environment.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=_TIMEOUT_S) as answer:
        text: str = answer.read().decode()
        return text


def _expiry(keys: Mapping[str, str]) -> datetime.datetime:
    return datetime.datetime.fromisoformat(keys["Expiration"].replace("Z", "+00:00"))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 - images have Python 3.10
