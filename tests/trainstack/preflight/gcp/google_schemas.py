"""Writes google_schemas.json: methods of the APIs that a preflight asks, and the fields of their answers.

pip download --no-deps google-api-python-client
python -m tests.trainstack.preflight.gcp.google_schemas google_api_python_client-*.whl
"""

import sys
from pathlib import Path
from typing import Any, Final

from tests.policies.sources.live.google_schemas import kept, written
from trainstack.preflight.gcp.methods import METHODS

FILE: Final = Path(__file__).with_name("google_schemas.json")
ROOTS: Final = {
    "cloudbilling.v1": (
        "BillingAccount",
        "ListSkusResponse",
        "ProjectBillingInfo",
        "TestIamPermissionsResponse",
    ),
    "cloudresourcemanager.v3": ("Folder", "Organization", "Project", "TestIamPermissionsResponse"),
    "cloudscheduler.v1": ("ListLocationsResponse",),
    "compute.v1": (
        "AcceleratorTypeAggregatedList",
        "AddressAggregatedList",
        "DiskAggregatedList",
        "FutureReservationsListResponse",
        "InstanceAggregatedList",
        "MachineTypeAggregatedList",
        "NetworkList",
        "Reservation",
        "ReservationAggregatedList",
        "ReservationBlocksGetResponse",
        "ZoneList",
    ),
    "container.v1": ("Cluster", "ServerConfig"),
    "essentialcontacts.v1": ("GoogleCloudEssentialcontactsV1ListContactsResponse",),
    "file.v1": ("ListInstancesResponse",),
    "iam.v1": ("Policy", "WorkloadIdentityPoolProvider"),
    "monitoring.v3": ("ListNotificationChannelsResponse",),
    "oauth2.v2": ("Userinfo",),
    "orgpolicy.v2": ("GoogleCloudOrgpolicyV2Policy",),
    "pubsub.v1": ("ListTopicsResponse", "Policy"),
    "secretmanager.v1": ("SecretVersion",),
    "serviceusage.v1": ("ListServicesResponse",),
    "storage.v1": ("Bucket",),
}
_STRINGS: Final = {"*": "string"}
_CONFIG: Final = {
    "preferredValue": "string",
    "stateDetail": "string",
    "grantedValue": "string",
    "traceId": "string",
    "annotations": _STRINGS,
    "requestOrigin": "string",
}
# The package has no document of Cloud Quotas. JSON has names in camelCase, and numbers of 64 bits as text.
_QUOTAS: Final[dict[str, Any]] = {
    "source": "googleapis/googleapis google/api/cloudquotas/v1/{cloudquotas,resources}.proto at 6825e4a644ab",
    "date": "2026-11-25",
    "methods": {
        "cloudquotas.projects.locations.quotaPreferences.list": {
            "verb": "GET",
            "address": "https://cloudquotas.googleapis.com/v1/{parent}/quotaPreferences",
            "parameters": ["filter", "orderBy", "pageSize", "pageToken", "parent"],
            "response": "ListQuotaPreferencesResponse",
        },
        "cloudquotas.projects.locations.services.quotaInfos.get": {
            "verb": "GET",
            "address": "https://cloudquotas.googleapis.com/v1/{name}",
            "parameters": ["name"],
            "response": "QuotaInfo",
        },
        "cloudquotas.projects.locations.services.quotaInfos.list": {
            "verb": "GET",
            "address": "https://cloudquotas.googleapis.com/v1/{parent}/quotaInfos",
            "parameters": ["pageSize", "pageToken", "parent"],
            "response": "ListQuotaInfosResponse",
        },
    },
    "schemas": {
        "ListQuotaPreferencesResponse": {
            "quotaPreferences": ["#QuotaPreference"],
            "nextPageToken": "string",
            "unreachable": ["string"],
        },
        "ListQuotaInfosResponse": {"quotaInfos": ["#QuotaInfo"], "nextPageToken": "string"},
        "QuotaPreference": {
            **dict.fromkeys(("name", "etag", "createTime", "updateTime", "service", "quotaId"), "string"),
            **dict.fromkeys(("justification", "contactEmail"), "string"),
            "dimensions": _STRINGS,
            "quotaConfig": _CONFIG,
            "reconciling": "boolean",
        },
        "QuotaInfo": {
            **dict.fromkeys(("name", "quotaId", "metric", "service", "refreshInterval"), "string"),
            **dict.fromkeys(("containerType", "metricDisplayName", "quotaDisplayName"), "string"),
            **dict.fromkeys(("metricUnit", "serviceRequestQuotaUri"), "string"),
            **dict.fromkeys(("isPrecise", "isFixed", "isConcurrent"), "boolean"),
            "dimensions": ["string"],
            "quotaIncreaseEligibility": {"isEligible": "boolean", "ineligibilityReason": "string"},
            "dimensionsInfos": ["#DimensionsInfo"],
        },
        "DimensionsInfo": {
            "dimensions": _STRINGS,
            "details": {"value": "string"},
            "applicableLocations": ["string"],
        },
    },
}

if __name__ == "__main__":
    named = (*METHODS, "oauth2.userinfo.get")
    kept({"cloudquotas.v1": _QUOTAS, **written(Path(sys.argv[1]), ROOTS, named)}, FILE)
