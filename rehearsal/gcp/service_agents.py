"""Service agents: the accounts by which Google's services act in a project.

Source: IAM documentation, "Service agents" (addresses by service).
"""

from collections.abc import Mapping

# API -> address; {number} is the project's.
_AGENTS: Mapping[str, str] = {
    "aiplatform.googleapis.com": "service-{number}@gcp-sa-aiplatform.iam.gserviceaccount.com",
    "artifactregistry.googleapis.com": "service-{number}@gcp-sa-artifactregistry.iam.gserviceaccount.com",
    "compute.googleapis.com": "service-{number}@compute-system.iam.gserviceaccount.com",
    "container.googleapis.com": "service-{number}@container-engine-robot.iam.gserviceaccount.com",
    "eventarc.googleapis.com": "service-{number}@gcp-sa-eventarc.iam.gserviceaccount.com",
    "file.googleapis.com": "service-{number}@cloud-filer.iam.gserviceaccount.com",
    "iap.googleapis.com": "service-{number}@gcp-sa-iap.iam.gserviceaccount.com",
    "lustre.googleapis.com": "service-{number}@gcp-sa-lustre.iam.gserviceaccount.com",
    "logging.googleapis.com": "service-{number}@gcp-sa-logging.iam.gserviceaccount.com",
    "monitoring.googleapis.com": "service-{number}@gcp-sa-monitoring-notification.iam.gserviceaccount.com",
    "pubsub.googleapis.com": "service-{number}@gcp-sa-pubsub.iam.gserviceaccount.com",
    "secretmanager.googleapis.com": "service-{number}@gcp-sa-secretmanager.iam.gserviceaccount.com",
    "servicenetworking.googleapis.com": "service-{number}@service-networking.iam.gserviceaccount.com",
    "sqladmin.googleapis.com": "service-{number}@gcp-sa-cloud-sql.iam.gserviceaccount.com",
    "storage.googleapis.com": "service-{number}@gs-project-accounts.iam.gserviceaccount.com",
}


def email(service: str, number: str) -> str:
    """The agent of an API such as `sqladmin.googleapis.com` in the project of a number; empty if unknown."""
    return _AGENTS.get(service, "").format(number=number)


def created_on_request(number: str) -> set[str]:
    """Addresses of agents that a new project has not yet.

    That of Cloud Storage comes with the first question for it, which the provider's function asks.
    """
    return {one.format(number=number) for api, one in _AGENTS.items() if api != "storage.googleapis.com"}
