"""Read-only methods of Google's APIs that a preflight uses, each with the permission it needs.

Addresses are from the discovery documents of each API, against which a test holds them; those of Cloud Quotas
from googleapis/googleapis google/api/cloudquotas/v1/cloudquotas.proto. Permissions: iann0036/iam-dataset
gcp/map.json at 2073fa52ac00 (2026-08-22); of Cloud Quotas, organization policies and effective policies the
predefined viewer roles there.
"""

from collections.abc import Mapping
from typing import Final

from infra.clouds.gcp.api import ApiMethod

_COMPUTE: Final = "https://compute.googleapis.com/compute/v1/projects/{project}"
_BILLING: Final = "https://cloudbilling.googleapis.com/v1"
_CRM: Final = "https://cloudresourcemanager.googleapis.com/v3"
_GKE: Final = "https://container.googleapis.com/v1"
_IAM: Final = "https://iam.googleapis.com/v1"
_PUBSUB: Final = "https://pubsub.googleapis.com/v1"
_QUOTAS: Final = "https://cloudquotas.googleapis.com/v1"
_RESERVATION: Final = f"{_COMPUTE}/zones/{{zone}}/reservations/{{reservation}}"
_LIST: Final = {"maxResults": 500}
_AGGREGATED: Final = ("acceleratorTypes", "addresses", "disks", "instances", "machineTypes", "reservations")

METHODS: Final[Mapping[str, ApiMethod]] = {
    "cloudbilling.billingAccounts.get": ApiMethod(f"{_BILLING}/{{name}}", right="billing.accounts.get"),
    # A test of one's own permissions needs none.
    "cloudbilling.billingAccounts.testIamPermissions": ApiMethod(
        f"{_BILLING}/{{resource}}:testIamPermissions", "POST"
    ),
    "cloudbilling.projects.getBillingInfo": ApiMethod(
        f"{_BILLING}/{{name}}/billingInfo", right="resourcemanager.projects.get"
    ),
    # The public price list.
    "cloudbilling.services.skus.list": ApiMethod(f"{_BILLING}/{{parent}}/skus"),
    "cloudquotas.projects.locations.quotaPreferences.list": ApiMethod(
        f"{_QUOTAS}/{{parent}}/quotaPreferences", page={"pageSize": 100}, right="cloudquotas.quotas.get"
    ),
    "cloudquotas.projects.locations.services.quotaInfos.get": ApiMethod(
        f"{_QUOTAS}/{{name}}", right="cloudquotas.quotas.get"
    ),
    "cloudquotas.projects.locations.services.quotaInfos.list": ApiMethod(
        f"{_QUOTAS}/{{parent}}/quotaInfos", page={"pageSize": 500}, right="cloudquotas.quotas.get"
    ),
    "cloudresourcemanager.folders.get": ApiMethod(f"{_CRM}/{{name}}", right="resourcemanager.folders.get"),
    "cloudresourcemanager.organizations.get": ApiMethod(
        f"{_CRM}/{{name}}", right="resourcemanager.organizations.get"
    ),
    "cloudresourcemanager.projects.get": ApiMethod(f"{_CRM}/{{name}}", right="resourcemanager.projects.get"),
    "cloudresourcemanager.projects.testIamPermissions": ApiMethod(
        f"{_CRM}/{{resource}}:testIamPermissions", "POST"
    ),
    "cloudscheduler.projects.locations.list": ApiMethod(
        "https://cloudscheduler.googleapis.com/v1/{name}/locations",
        page={"pageSize": 100},
        right="cloudscheduler.locations.list",
    ),
    **{
        f"compute.{kind}.aggregatedList": ApiMethod(
            f"{_COMPUTE}/aggregated/{kind}", page=_LIST, right=f"compute.{kind}.list"
        )
        for kind in _AGGREGATED
    },
    "compute.futureReservations.list": ApiMethod(
        f"{_COMPUTE}/zones/{{zone}}/futureReservations", page=_LIST, right="compute.futureReservations.list"
    ),
    "compute.networks.list": ApiMethod(
        f"{_COMPUTE}/global/networks", page=_LIST, right="compute.networks.list"
    ),
    "compute.reservationBlocks.get": ApiMethod(
        f"{_RESERVATION}/reservationBlocks/{{reservationBlock}}", right="compute.reservationBlocks.get"
    ),
    "compute.reservations.get": ApiMethod(_RESERVATION, right="compute.reservations.get"),
    "compute.zones.list": ApiMethod(f"{_COMPUTE}/zones", page=_LIST, right="compute.zones.list"),
    "container.projects.locations.clusters.get": ApiMethod(
        f"{_GKE}/{{name}}", right="container.clusters.get"
    ),
    "container.projects.locations.getServerConfig": ApiMethod(
        f"{_GKE}/{{name}}/serverConfig", right="container.clusters.list"
    ),
    "essentialcontacts.projects.contacts.list": ApiMethod(
        "https://essentialcontacts.googleapis.com/v1/{parent}/contacts",
        page={"pageSize": 100},
        right="essentialcontacts.contacts.list",
    ),
    "file.projects.locations.instances.list": ApiMethod(
        "https://file.googleapis.com/v1/{parent}/instances",
        page={"pageSize": 1000},
        right="file.instances.list",
    ),
    "iam.projects.locations.workloadIdentityPools.providers.get": ApiMethod(
        f"{_IAM}/{{name}}", right="iam.workloadIdentityPoolProviders.get"
    ),
    "iam.projects.serviceAccounts.getIamPolicy": ApiMethod(
        f"{_IAM}/{{resource}}:getIamPolicy", "POST", right="iam.serviceAccounts.getIamPolicy"
    ),
    "monitoring.projects.notificationChannels.list": ApiMethod(
        "https://monitoring.googleapis.com/v3/{name}/notificationChannels",
        page={"pageSize": 1000},
        right="monitoring.notificationChannels.list",
    ),
    "orgpolicy.projects.policies.getEffectivePolicy": ApiMethod(
        "https://orgpolicy.googleapis.com/v2/{name}:getEffectivePolicy", right="orgpolicy.policy.get"
    ),
    "pubsub.projects.topics.getIamPolicy": ApiMethod(
        f"{_PUBSUB}/{{resource}}:getIamPolicy", right="pubsub.topics.getIamPolicy"
    ),
    "pubsub.projects.topics.list": ApiMethod(
        f"{_PUBSUB}/{{project}}/topics", page={"pageSize": 1000}, right="pubsub.topics.list"
    ),
    "secretmanager.projects.secrets.versions.get": ApiMethod(
        "https://secretmanager.googleapis.com/v1/{name}", right="secretmanager.versions.get"
    ),
    "serviceusage.services.list": ApiMethod(
        "https://serviceusage.googleapis.com/v1/{parent}/services",
        page={"pageSize": 200},
        right="serviceusage.services.list",
    ),
    "storage.buckets.get": ApiMethod(
        "https://storage.googleapis.com/storage/v1/b/{bucket}", right="storage.buckets.get"
    ),
}
