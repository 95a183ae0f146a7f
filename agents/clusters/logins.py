"""Logins of the manager's pod to the API servers of workers; standard library only.

Kueue refuses kubeconfigs with a program (exec), a token file or an auth provider (v0.19.2
pkg/controller/admissionchecks/multikueue/multikueuecluster.go, `validateRestConfig`), which is how clients of
EKS and GKE log in. The pod logs in with the identity that its cloud gives it. On EKS it asks the worker for a
token of the manager's account there. The DNS endpoint of GKE accepts tokens of Google alone, so Kueue gets
that of the login itself (docs/adr/0099).
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
from xml.etree import ElementTree

_TIMEOUT_S = 10.0
_EMPTY = hashlib.sha256(b"").hexdigest()
# A presigned request of EKS's authenticator is accepted for 15 minutes from its date, and its expiry is 60 s
# (kubernetes-sigs/aws-iam-authenticator pkg/token/token.go, `presignedURLExpiration`, `requestPresignParam`).
_PRESIGNED_S = 60
_CLUSTER_HEADER = "x-k8s-aws-id"
_STS = "2011-06-15"
_SESSION = "trainstack-dispatcher"
# The DNS endpoint asks IAM, which needs the first; without the second, the API server knows an account by its
# number instead of its address (GKE documentation, "Authorize actions in clusters using RBAC").
_GOOGLE_SCOPES = (
    "https://www.googleapis.com/auth/cloud-platform",
    "https://www.googleapis.com/auth/userinfo.email",
)
_IAM_CREDENTIALS = "https://iamcredentials.googleapis.com/"


def google_token() -> str:
    """An access token of the pod's identity (Workload Identity Federation for GKE). Raises OSError.

    GKE accepts it as a bearer token.
    """
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    place = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    return str(json.loads(_read(place, {"Metadata-Flavor": "Google"}))["access_token"])


def account_token(email: str, lasts_s: int) -> str:
    """An access token of a service account that the pod's identity may use, for `lasts_s` seconds.

    Raises OSError, also where it may not. As with gcloud, a variable overrides the endpoint of the API.
    """
    given = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS") or _IAM_CREDENTIALS
    place = f"{given.rstrip('/')}/v1/projects/-/serviceAccounts/{email}:generateAccessToken"
    body = json.dumps({"scope": list(_GOOGLE_SCOPES), "lifetime": f"{lasts_s}s"}).encode()
    headers = {"Authorization": f"Bearer {google_token()}", "Content-Type": "application/json"}
    return str(json.loads(_read(place, headers, body))["accessToken"])


def aws_token(cluster: str, region: str, role: str = "") -> str:
    """A token of the pod's role (EKS Pod Identity) for an EKS cluster; of `role`, an ARN, if given.

    Raises OSError, also where the role does not trust this one, and ValueError.
    """
    path = os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
    authorization = Path(path).read_text(encoding="utf-8").strip()
    place = os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
    keys: Mapping[str, str] = json.loads(_read(place, {"Authorization": authorization}))
    if role:
        keys = assumed(_read(assuming(keys, role, region, _now()), {}))
    return eks_token(keys, cluster, region, _now())


def assuming(keys: Mapping[str, str], role: str, region: str, at: datetime.datetime) -> str:
    """The address of a request to assume a role for 15 minutes, the shortest time of STS.

    The endpoint is that of the region, or the one that the environment sets for all programs of AWS.
    """
    given = os.environ.get("AWS_ENDPOINT_URL_STS") or os.environ.get("AWS_ENDPOINT_URL") or ""
    query = {
        "Action": "AssumeRole",
        "Version": _STS,
        "RoleArn": role,
        "RoleSessionName": _SESSION,
        "DurationSeconds": "900",
    }
    return _presigned(keys, query, region, at, {}, endpoint=given.rstrip("/"))


def assumed(response: str) -> dict[str, str]:
    """The keys in a response of STS to AssumeRole, as `eks_token` takes them. Raises ValueError."""
    try:
        found = ElementTree.fromstring(response).find(".//{*}Credentials")  # noqa: S314 - of AWS, over TLS
    except ElementTree.ParseError as error:
        raise ValueError(f"STS returned no XML: {error}") from error
    named = {one.tag.rpartition("}")[2]: one.text or "" for one in (found if found is not None else ())}
    if not {"AccessKeyId", "SecretAccessKey", "SessionToken"} <= named.keys():
        raise ValueError("STS returned no credentials")
    return {
        "AccessKeyId": named["AccessKeyId"],
        "SecretAccessKey": named["SecretAccessKey"],
        "Token": named["SessionToken"],
    }


def eks_token(keys: Mapping[str, str], cluster: str, region: str, at: datetime.datetime) -> str:
    """The token: a presigned `GetCallerIdentity` of the region's STS, which EKS calls.

    `keys`: AccessKeyId, SecretAccessKey, Token.
    """
    query = {"Action": "GetCallerIdentity", "Version": _STS}
    address = _presigned(keys, query, region, at, {_CLUSTER_HEADER: cluster})
    return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


def _presigned(
    keys: Mapping[str, str],
    action: Mapping[str, str],
    region: str,
    at: datetime.datetime,
    headers: Mapping[str, str],
    *,
    endpoint: str = "",
) -> str:
    """The address of a GET of STS with its signature (Signature Version 4, in the query).

    `headers` are signed beside `host`; their names sort after it. `endpoint`: by default that of the region.
    """
    endpoint = endpoint or f"https://sts.{region}.amazonaws.com"
    host = urllib.parse.urlsplit(endpoint).netloc
    stamp = f"{at:%Y%m%dT%H%M%SZ}"
    scope = f"{at:%Y%m%d}/{region}/sts/aws4_request"
    signed_names = ";".join(("host", *headers))
    query = {
        **action,
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{keys['AccessKeyId']}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(_PRESIGNED_S),
        "X-Amz-Security-Token": keys["Token"],
        "X-Amz-SignedHeaders": signed_names,
    }
    text = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="-_.~")
    lines = "".join(f"{name}:{value}\n" for name, value in {"host": host, **headers}.items())
    request = "\n".join(("GET", "/", text, lines, signed_names, _EMPTY))
    digest = hashlib.sha256(request.encode()).hexdigest()
    signed = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, digest))
    key = f"AWS4{keys['SecretAccessKey']}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, signed.encode(), hashlib.sha256).hexdigest()
    return f"{endpoint}/?{text}&X-Amz-Signature={signature}"


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _read(place: str, headers: Mapping[str, str], body: bytes | None = None) -> str:
    # STS, IAM Credentials, or an address of the pod's own environment.
    request = urllib.request.Request(place, body, dict(headers))  # noqa: S310
    # Services of the machine itself and of the cloud, which the policy of the namespace lets out: no proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_TIMEOUT_S) as response:
        return str(response.read().decode())
