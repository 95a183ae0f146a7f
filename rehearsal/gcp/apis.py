"""The API that a resource needs, and the error of a disabled one.

Source: Service Usage documentation, "Enabled services"; texts from public logs of the provider.
"""

from collections.abc import Mapping

from rehearsal.accounts import project_number
from rehearsal.core.model import RefusalError

# Module of the type -> (API, title). Types without a row need no known API.
_APIS: Mapping[str, tuple[str, str]] = {
    "artifactregistry": ("artifactregistry.googleapis.com", "Artifact Registry API"),
    "billing": ("billingbudgets.googleapis.com", "Cloud Billing Budget API"),
    "cloudfunctionsv2": ("cloudfunctions.googleapis.com", "Cloud Functions API"),
    "cloudrunv2": ("run.googleapis.com", "Cloud Run Admin API"),
    "compute": ("compute.googleapis.com", "Compute Engine API"),
    "container": ("container.googleapis.com", "Kubernetes Engine API"),
    "filestore": ("file.googleapis.com", "Cloud Filestore API"),
    "iap": ("iap.googleapis.com", "Cloud Identity-Aware Proxy API"),
    "kms": ("cloudkms.googleapis.com", "Cloud Key Management Service (KMS) API"),
    "logging": ("logging.googleapis.com", "Cloud Logging API"),
    "lustre": ("lustre.googleapis.com", "Google Cloud Managed Lustre API"),
    "monitoring": ("monitoring.googleapis.com", "Cloud Monitoring API"),
    "pubsub": ("pubsub.googleapis.com", "Cloud Pub/Sub API"),
    "secretmanager": ("secretmanager.googleapis.com", "Secret Manager API"),
    "serviceaccount": ("iam.googleapis.com", "Identity and Access Management (IAM) API"),
    "servicenetworking": ("servicenetworking.googleapis.com", "Service Networking API"),
    "sql": ("sqladmin.googleapis.com", "Cloud SQL Admin API"),
    "storage": ("storage.googleapis.com", "Cloud Storage API"),
    "workbench": ("notebooks.googleapis.com", "Notebooks API"),
}
# also for bindings of a project
_PROJECTS = ("cloudresourcemanager.googleapis.com", "Cloud Resource Manager API")


def needed(token: str) -> tuple[str, str] | None:
    """The API of a type such as `gcp:kms/keyRing:KeyRing`, and its title."""
    module, _, kind = token.removeprefix("gcp:").partition("/")
    if module == "projects":
        return _PROJECTS if kind.startswith("iAM") else None
    return _APIS.get(module)


def disabled(api: str, title: str, project: str) -> RefusalError:
    """The error for an API that is not enabled."""
    number = project_number(project)
    return RefusalError(
        "accessNotConfigured",
        f"Error 403: {title} has not been used in project {number} before or it is disabled. Enable it by "
        f"visiting https://console.developers.google.com/apis/api/{api}/overview?project={number} then "
        "retry. If you enabled this API recently, wait a few minutes for the action to propagate to our "
        "systems and retry.",
        f"Create a projects.Service for {api} and let this resource depend on it, or enable it before.",
    )
