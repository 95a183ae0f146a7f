"""The authenticator of EKS: who a bearer token of `aws eks get-token` is in a cluster.

Source: kubernetes-sigs/aws-iam-authenticator pkg/token/token.go (`Verify`); users and groups of access
entries: Amazon EKS User Guide, "Create access entries".
"""

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.identity import Caller, Identities
from rehearsal.dataplane.aws.signatures import is_presigned_by

_ENTRY = "aws:eks/accessEntry:AccessEntry"
_PREFIX, _HEADER = "k8s-aws-v1.", "x-k8s-aws-id"
# Of the partition aws.
_HOST = re.compile(r"sts(?:-fips)?(?:\.(?P<region>[a-z0-9-]+))?\.(?:amazonaws\.com|api\.aws)")
# Base64 of URLs without padding.
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 4096
_PARAMETERS = frozenset({
    "Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires",
    "X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders",
})  # fmt: skip
_VALID = timedelta(minutes=15)


def user_of(state: State, identities: Identities, cluster: Record, token: str) -> Mapping[str, object] | None:
    """The user of a token in a cluster, as a TokenReview shows it; None for a token that EKS refuses.

    Permissions by access policies of EKS are not emulated: an entry has its groups alone. Nor is the id of
    its role, which EKS keeps: a role that is made again under its name needs a new entry.
    """
    caller = _caller(identities, str(cluster.outputs.get("name") or cluster.name), token)
    if caller is None:
        return None
    for entry in state.find(type=_ENTRY, scope=cluster.scope):
        given = entry.inputs
        if (
            given.get("principalArn") == caller.role_arn
            and given.get("clusterName") == cluster.outputs["name"]
        ):
            name = str(given.get("userName") or f"{caller.arn.rpartition('/')[0]}/{{{{SessionName}}}}")
            return {
                "username": name.replace("{{SessionName}}", caller.session.replace("@", "-"))
                .replace("{{SessionNameRaw}}", caller.session)
                .replace("{{AccountID}}", caller.account),
                "groups": list(given.get("kubernetesGroups") or ()),
            }
    return None


def _caller(identities: Identities, cluster: str, token: str) -> Caller | None:
    """The caller of the presigned request in a token for a cluster of this name."""
    text = token.removeprefix(_PREFIX)
    if text == token or len(token) > _LONGEST or not _PLAIN.fullmatch(text):
        return None
    try:
        url = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
        query = dict(pairs)
        made = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        key, _, region, service, _ = query["X-Amz-Credential"].split("/")
        expires = int(query["X-Amz-Expires"])
        fits = is_presigned_by(url, {"host": parts.netloc, _HEADER: cluster}, identities.secret(key))
    except (KeyError, ValueError):
        return None
    host = _HOST.fullmatch(parts.netloc)
    now = datetime.now(UTC)
    asked = (
        parts.scheme == "https"
        and parts.path == "/"
        and host is not None
        and host["region"] in (None, region)
        and service == "sts"
        and len(pairs) == len(query)
        and query.keys() <= _PARAMETERS
        and query.get("Action") == "GetCallerIdentity"
        and _HEADER in query["X-Amz-SignedHeaders"].split(";")
        and 0 <= expires <= _VALID.total_seconds()
        and now - _VALID <= made <= now + _VALID
    )
    return identities.caller(key, query.get("X-Amz-Security-Token", "")) if asked and fits else None
