"""Methods of Google's APIs that a collector uses; all of them are read-only.

From the discovery documents of each API; a test compares them.
"""

from collections.abc import Mapping

from infra.clouds.gcp.api import ApiMethod

_CRM, _LOGGING = "https://cloudresourcemanager.googleapis.com", "https://logging.googleapis.com"

METHODS: Mapping[str, ApiMethod] = {
    "billingbudgets.billingAccounts.budgets.list": ApiMethod(
        "https://billingbudgets.googleapis.com/v1/{parent}/budgets", page={"pageSize": 100}
    ),
    "cloudasset.assets.list": ApiMethod(
        "https://cloudasset.googleapis.com/v1/{parent}/assets", page={"pageSize": 1000}
    ),
    "cloudbilling.projects.getBillingInfo": ApiMethod(
        "https://cloudbilling.googleapis.com/v1/{name}/billingInfo"
    ),
    "cloudresourcemanager.folders.getIamPolicy": ApiMethod(f"{_CRM}/v3/{{resource}}:getIamPolicy", "POST"),
    "cloudresourcemanager.organizations.getIamPolicy": ApiMethod(
        f"{_CRM}/v3/{{resource}}:getIamPolicy", "POST"
    ),
    "cloudresourcemanager.projects.get": ApiMethod(f"{_CRM}/v1/projects/{{projectId}}"),
    "cloudresourcemanager.projects.getAncestry": ApiMethod(
        f"{_CRM}/v1/projects/{{projectId}}:getAncestry", "POST"
    ),
    "cloudresourcemanager.projects.getIamPolicy": ApiMethod(f"{_CRM}/v3/{{resource}}:getIamPolicy", "POST"),
    "logging.folders.sinks.list": ApiMethod(f"{_LOGGING}/v2/{{parent}}/sinks", page={"pageSize": 1000}),
    "logging.organizations.sinks.list": ApiMethod(f"{_LOGGING}/v2/{{parent}}/sinks", page={"pageSize": 1000}),
    "parallelstore.projects.locations.instances.list": ApiMethod(
        "https://parallelstore.googleapis.com/v1/{parent}/instances", page={"pageSize": 500}
    ),
    "storage.projects.hmacKeys.list": ApiMethod(
        "https://storage.googleapis.com/storage/v1/projects/{projectId}/hmacKeys", page={"maxResults": 250}
    ),
}
