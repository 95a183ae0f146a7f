"""Logins of the manager's pod to the API servers of workers; standard library only.

Kueue refuses kubeconfigs with a program (exec), a token file or an auth provider (v0.19.2
pkg/controller/admissionchecks/multikueue/multikueuecluster.go, `validateRestConfig`), which is how clients of
EKS and GKE log in. The pod logs in with the identity that its cloud gives it. On EKS it asks the worker for a
token of the manager's account there. The DNS endpoint of GKE accepts tokens of Google alone, so Kueue gets
that of the login itself (docs/adr/0099). A pod on AWS exchanges its identity there for one of Google Cloud
(docs/adr/0100).
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from agents.shared.api_server import refusal

_TIMEOUT_S = 5.0
_EMPTY = hashlib.sha256(b"").hexdigest()
# A presigned request of EKS's authenticator is accepted for 15 minutes from its date, and its expiry is 60 s
# (kubernetes-sigs/aws-iam-authenticator pkg/token/token.go, `presignedURLExpiration`, `requestPresignParam`).
_PRESIGNED_S = 60
_CLUSTER_HEADER = "x-k8s-aws-id"
_STS = "2011-06-15"
_ALGORITHM = "AWS4-HMAC-SHA256"
_SESSION = "trainstack-dispatcher"
# The DNS endpoint asks IAM, which needs the first; without the second, the API server knows an account by its
# number instead of its address (GKE documentation, "Authorize actions in clusters using RBAC").
_GOOGLE_SCOPES = (
    "https://www.googleapis.com/auth/cloud-platform",
    "https://www.googleapis.com/auth/userinfo.email",
)
_IAM_CREDENTIALS = "https://iamcredentials.googleapis.com/"
_GOOGLE_STS = "https://sts.googleapis.com/"
# The request that Google's STS sends to that of AWS, and the exchange: googleapis/google-auth-library-python
# google/auth/aws.py (`retrieve_subject_token`), google/oauth2/sts.py (`exchange_token`).
_IDENTITY = {"Action": "GetCallerIdentity", "Version": _STS}
_TARGET_HEADER = "x-goog-cloud-target-resource"
_EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
    "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
    "scope": _GOOGLE_SCOPES[0],
}


def google_token() -> str:
    """An access token of the pod's identity (Workload Identity Federation for GKE). Raises OSError.

    GKE accepts it as a bearer token.
    """
    host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
    place = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    return str(json.loads(_read(place, {"Metadata-Flavor": "Google"}))["access_token"])


def account_token(email: str, lasts_s: int, own: str) -> str:
    """An access token of a service account for `lasts_s` seconds, with a token of the pod's own identity.

    Raises OSError, also where that may not use the account.
    """
    path = f"v1/projects/-/serviceAccounts/{email}:generateAccessToken"
    place = _google("IAMCREDENTIALS", _IAM_CREDENTIALS) + path
    body = json.dumps({"scope": list(_GOOGLE_SCOPES), "lifetime": f"{lasts_s}s"}).encode()
    headers = {"Authorization": f"Bearer {own}", "Content-Type": "application/json"}
    return str(json.loads(_read(place, headers, body))["accessToken"])


def federated_token(provider: str, region: str) -> str:
    """An access token of Google Cloud for the pod's role on AWS (EKS Pod Identity).

    `provider`: full name of the provider in a workload identity pool, `//iam.googleapis.com/projects/...`;
    `region`: that of the STS of AWS which Google asks. Raises OSError, also where the provider does not admit
    the role.
    """
    subject = urllib.parse.quote(json.dumps(identity_request(_pod_keys(), provider, region, _now())))
    form = urllib.parse.urlencode({**_EXCHANGE, "audience": provider, "subject_token": subject})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    place = f"{_google('STS', _GOOGLE_STS)}v1/token"
    return str(json.loads(_read(place, headers, form.encode()))["access_token"])


def identity_request(
    keys: Mapping[str, str], provider: str, region: str, at: datetime.datetime
) -> dict[str, object]:
    """A signed request for the identity of the keys, for one provider alone, as Google's STS takes it."""
    host, stamp = f"sts.{region}.amazonaws.com", f"{at:%Y%m%dT%H%M%SZ}"
    headers = {
        "host": host,
        "x-amz-date": stamp,
        "x-amz-security-token": keys["Token"],
        _TARGET_HEADER: provider,
    }
    query, scope, names = urllib.parse.urlencode(_IDENTITY), _scope(region, at), ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    signature = _signature(keys, "\n".join(("POST", "/", query, lines, names, _EMPTY)), stamp, scope)
    headers["Authorization"] = (
        f"{_ALGORITHM} Credential={keys['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    rows = [{"key": name, "value": value} for name, value in headers.items()]
    return {"url": f"https://{host}?{query}", "method": "POST", "headers": rows}


def _google(api: str, usual: str) -> str:
    """The endpoint of an API of Google; as with gcloud, a variable overrides it."""
    return (os.environ.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}") or usual).rstrip("/") + "/"


def aws_token(cluster: str, region: str, role: str = "") -> str:
    """A token of the pod's role (EKS Pod Identity) for an EKS cluster; of `role`, an ARN, if given.

    Raises OSError, also where the role does not trust this one, and ValueError.
    """
    keys = _pod_keys()
    if role:
        keys = assumed(_read(assuming(keys, role, region, _now()), {}))
    return eks_token(keys, cluster, region, _now())


def _pod_keys() -> Mapping[str, str]:
    """Keys of the pod's role: AccessKeyId, SecretAccessKey, Token."""
    path = os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
    authorization = Path(path).read_text(encoding="utf-8").strip()
    place = os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
    return dict(json.loads(_read(place, {"Authorization": authorization})))


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
    address = _presigned(keys, _IDENTITY, region, at, {_CLUSTER_HEADER: cluster})
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
    scope = _scope(region, at)
    signed_names = ";".join(("host", *headers))
    query = {
        **action,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys['AccessKeyId']}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(_PRESIGNED_S),
        "X-Amz-Security-Token": keys["Token"],
        "X-Amz-SignedHeaders": signed_names,
    }
    text = urllib.parse.urlencode(sorted(query.items()), quote_via=urllib.parse.quote, safe="-_.~")
    lines = "".join(f"{name}:{value}\n" for name, value in {"host": host, **headers}.items())
    request = "\n".join(("GET", "/", text, lines, signed_names, _EMPTY))
    return f"{endpoint}/?{text}&X-Amz-Signature={_signature(keys, request, stamp, scope)}"


def _scope(region: str, at: datetime.datetime) -> str:
    return f"{at:%Y%m%d}/{region}/sts/aws4_request"


def _signature(keys: Mapping[str, str], request: str, stamp: str, scope: str) -> str:
    """The signature of a canonical request (Signature Version 4)."""
    digest = hashlib.sha256(request.encode()).hexdigest()
    signed = "\n".join((_ALGORITHM, stamp, scope, digest))
    key = f"AWS4{keys['SecretAccessKey']}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, signed.encode(), hashlib.sha256).hexdigest()


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _read(place: str, headers: Mapping[str, str], body: bytes | None = None) -> str:
    # STS, IAM Credentials, or an address of the pod's own environment.
    request = urllib.request.Request(place, body, dict(headers))  # noqa: S310
    # Services of the machine itself and of the cloud, which the policy of the namespace lets out: no proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        why = refusal(error).decode(errors="replace")[:200]
        raise OSError(f"{urllib.parse.urlsplit(place).netloc}: {error.code} {why}") from error
    except http.client.HTTPException as error:
        raise OSError(f"{urllib.parse.urlsplit(place).netloc}: {type(error).__name__}: {error}") from error
