"""The authenticator of EKS: who a bearer token of `aws eks get-token` is in a cluster.

Source: kubernetes-sigs/aws-iam-authenticator pkg/token/token.go (`Verify`); users and groups of access
entries: Amazon EKS User Guide, "Create access entries".
"""

import base64
import binascii
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
_HOST = re.compile(r"sts(?:-fips)?(?:\.[a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?")
_VALID = timedelta(minutes=15)


def user_of(state: State, identities: Identities, cluster: Record, token: str) -> Mapping[str, object] | None:
    """The user of a token in a cluster, as a TokenReview shows it; None for a token that EKS refuses.

    Permissions by access policies of EKS are not emulated: an entry has its groups alone.
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
                "username": name.replace("{{SessionName}}", caller.session),
                "groups": list(given.get("kubernetesGroups") or ()),
            }
    return None


def _caller(identities: Identities, cluster: str, token: str) -> Caller | None:
    """The caller of the presigned request in a token for a cluster of this name."""
    if not token.startswith(_PREFIX):
        return None
    try:
        text = token.removeprefix(_PREFIX)
        url = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        made = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        key = query["X-Amz-Credential"].split("/")[0]
        signed = query["X-Amz-SignedHeaders"].split(";")
        headers = {"host": parts.netloc, _HEADER: cluster}
        asked = parts.scheme == "https" and _HOST.fullmatch(parts.netloc) and parts.path == "/"
        fits = is_presigned_by(url, headers, identities.secret(key))
    except (KeyError, ValueError, binascii.Error):
        return None
    now = datetime.now(UTC)
    if not asked or query.get("Action") != "GetCallerIdentity" or _HEADER not in signed or not fits:
        return None
    if not now - _VALID <= made <= now + _VALID:
        return None
    return identities.caller(key, query.get("X-Amz-Security-Token", ""))
