"""Service accounts, their keys and IAM policies, and workload identity providers.

Shapes: google/services/{resourcemanager,iambeta,storage} and google/tpgiamresource of
terraform-provider-google.
"""

import re

from policies.sources.live.gcp.assets import (
    asset,
    assets,
    below_service,
    by_name,
    end_of,
    own,
    part,
    policies_of,
    short,
)
from policies.sources.live.gcp.project import role
from policies.sources.live.mapping import LiveKind, One, View, same
from policies.sources.live.queries import ACCOUNT, ApiQuery

_ACCOUNT, _KEY = "iam.googleapis.com/ServiceAccount", "iam.googleapis.com/ServiceAccountKey"
_PROVIDER = "iam.googleapis.com/WorkloadIdentityPoolProvider"
QUERIES = (
    *map(assets, (_ACCOUNT, _KEY, _PROVIDER)),
    policies_of(_ACCOUNT),
    # Asset Inventory has no HMAC keys. The list has no secrets: those are reported once, at creation.
    ApiQuery(
        "storage", "projects.hmacKeys.list", "items", given={"projectId": ACCOUNT},
        right="storage.hmacKeys.list",
    ),
)  # fmt: skip
# Accounts that services create in a project (IAM, "Service account types": default service accounts).
_DEFAULT = re.compile(r"-compute@developer\.gserviceaccount\.com$|@appspot\.gserviceaccount\.com$")


def _accounts(view: View) -> dict[str, str]:
    look = view.look
    key = "gcp service accounts"
    if key not in look.indexed:
        rows = [item.answer for item in look.items(assets(_ACCOUNT).name)]
        look.indexed[key] = {one.get("assetName"): own(view, str(one.get("name"))) for one in rows}
    found: dict[str, str] = look.indexed[key]
    return found


def _used(view: View) -> str:
    whole = view.at("of.assetName")
    return _accounts(view).get(whole) or own(view, below_service(whole))


KINDS = (
    asset(
        "gcp:serviceaccount/account:Account",
        _ACCOUNT,
        {
            "accountId": lambda view: str(view.at("email") or "").partition("@")[0] or None,
            **same("description", "disabled", "displayName", "email", "uniqueId"),
            "name": by_name,
        },
        id=by_name,  # has the mail address instead of a number
        labels="",
        made=lambda view: bool(_DEFAULT.search(str(view.at("email")))),
    ),
    LiveKind(
        "gcp:serviceaccount/key:Key",
        assets(_KEY).name,
        by_name,
        {
            "keyAlgorithm": "keyAlgorithm",
            "name": by_name,
            "serviceAccountId": lambda view: by_name(view).rpartition("/keys/")[0],
            "validAfter": "validAfterTime",
            "validBefore": "validBeforeTime",
        },
        name=end_of("name"),
        regionless=True,
        # Google creates and rotates keys of its own for every account.
        when=lambda view: view.at("keyType") != "SYSTEM_MANAGED",
    ),
    LiveKind(
        "gcp:serviceaccount/iAMBinding:IAMBinding",
        policies_of(_ACCOUNT).name,
        role(_used),
        {"members": "members", "role": "role", "serviceAccountId": _used},
        each="iamPolicy.bindings",
        regionless=True,
    ),
    asset(
        "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider",
        _PROVIDER,
        {
            **same("attributeCondition", "attributeMapping", "description", "disabled", "displayName"),
            "aws": One("aws", {"accountId": "accountId"}),
            "oidc": One("oidc", same("allowedAudiences", "issuerUri")),
            "workloadIdentityPoolId": part("workloadIdentityPools"),
            "workloadIdentityPoolProviderId": short,
        },
        labels="",
        when=lambda view: view.at("state") != "DELETED",
    ),
    LiveKind(
        "gcp:storage/hmacKey:HmacKey",
        "storage.projects.hmacKeys.list",
        "projects/{account}/hmacKeys/{accessId}",
        {
            **same("accessId", "serviceAccountEmail", "state"),
            "project": "account",
        },
        name="{accessId}",
        regionless=True,
    ),
)
