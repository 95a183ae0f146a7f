"""Logins of the manager's pod to the API servers of workers; standard library only.

Kueue refuses kubeconfigs with a program (exec), a token file or an auth provider (v0.19.2
pkg/controller/admissionchecks/multikueue/multikueuecluster.go, `validateRestConfig`), which is how clients of
EKS and GKE log in. The pod logs in with the identity that its cloud gives it, and asks the worker for a token
of the manager's account there.
"""

import base64
import datetime
import hashlib
import hmac
import json
import os
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

_TIMEOUT_S = 10.0
_EMPTY = hashlib.sha256(b"").hexdigest()
# A presigned request of EKS's authenticator is accepted for 15 minutes from its date, and its expiry is 60 s
# (kubernetes-sigs/aws-iam-authenticator pkg/token/token.go, `presignedURLExpiration`, `requestPresignParam`).
_PRESIGNED_S = 60
_CLUSTER_HEADER = "x-k8s-aws-id"


def google_token() -> str:
    """An access token of the pod's identity (Workload Identity Federation for GKE). Raises OSError.

    GKE accepts it as a bearer token.
    """
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    place = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    return _read(place, {"Metadata-Flavor": "Google"})["access_token"]


def aws_token(cluster: str, region: str) -> str:
    """A token of the pod's role (EKS Pod Identity) for an EKS cluster. Raises OSError."""
    path = os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
    authorization = Path(path).read_text(encoding="utf-8").strip()
    place = os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
    return eks_token(_read(place, {"Authorization": authorization}), cluster, region, _now())


def eks_token(keys: Mapping[str, str], cluster: str, region: str, at: datetime.datetime) -> str:
    """The token: a presigned `GetCallerIdentity` of the region's STS, which EKS calls (Signature Version 4).

    `keys`: AccessKeyId, SecretAccessKey, Token.
    """
    host = f"sts.{region}.amazonaws.com"
    stamp = f"{at:%Y%m%dT%H%M%SZ}"
    scope = f"{at:%Y%m%d}/{region}/sts/aws4_request"
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{keys['AccessKeyId']}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(_PRESIGNED_S),
        "X-Amz-Security-Token": keys["Token"],
        "X-Amz-SignedHeaders": f"host;{_CLUSTER_HEADER}",
    }
    text = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="-_.~")
    headers = f"host:{host}\n{_CLUSTER_HEADER}:{cluster}\n"
    request = "\n".join(("GET", "/", text, headers, f"host;{_CLUSTER_HEADER}", _EMPTY))
    digest = hashlib.sha256(request.encode()).hexdigest()
    signed = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, digest))
    key = f"AWS4{keys['SecretAccessKey']}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, signed.encode(), hashlib.sha256).hexdigest()
    address = f"https://{host}/?{text}&X-Amz-Signature={signature}"
    return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _read(place: str, headers: Mapping[str, str]) -> dict[str, str]:
    request = urllib.request.Request(place, headers=dict(headers))  # noqa: S310 - of the pod's own environment
    # Services of the machine itself: no proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_TIMEOUT_S) as response:
        return dict(json.loads(response.read()))
