"""Resources of the project: their names, roles and conditions, whichever the form."""

import re
from dataclasses import dataclass

from infra.errors import Problem, UserError
from infra.naming import sanitize
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from trainstack.bootstrap.stacks import Site
from trainstack.bootstrap.trust import GITHUB, AgencyMember, Pipeline, Trust
from trainstack.preflight.gcp import apis
from trainstack.preflight.gcp.permissions import permissions
from trainstack.preflight.gcp.roles import rights

BILLING_ROLE = "roles/billing.costsManager"
STATE_ROLE = "roles/storage.objectUser"
KEY_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
KEY_RING, KEY = "trainstack", "state"
CATEGORY = "billing"
"""Notifications of the budget contact (Essential Contacts API, NotificationCategory)."""
_APIS = (
    "cloudkms.googleapis.com", "essentialcontacts.googleapis.com", "iamcredentials.googleapis.com",
    "sts.googleapis.com", "storage.googleapis.com",
)  # fmt: skip
"""APIs of the setup itself, beside those of the stacks."""


@dataclass(frozen=True)
class GcpProject:
    """Resources that an administrator creates in the project of a client's stacks."""

    client: str
    place: Site
    trust: AgencyMember | Pipeline

    @property
    def bucket(self) -> str:
        """The bucket of the state; names of buckets are of all customers, those of projects, too."""
        return sanitize(f"trainstack-{self.client}-{self.place.name}", max_length=63)

    @property
    def key(self) -> str:
        """The key of the state and of its secrets."""
        ring = f"projects/{self.place.name}/locations/{self.place.region}/keyRings/{KEY_RING}"
        return f"{ring}/cryptoKeys/{KEY}"

    @property
    def apis(self) -> list[str]:
        """APIs of the stacks and of the setup."""
        return sorted({*_APIS, *(one for spec in self.place.specs for one in apis.wanted_by(spec))})

    @property
    def billing_accounts(self) -> list[str]:
        """Ids of the accounts in which stacks keep budgets."""
        return sorted({_of(spec).billing_account for spec in self.place.specs})

    @property
    def pool(self) -> str:
        """The workload identity pool, of 4 to 32 characters."""
        return sanitize(f"trainstack-{self.client}", max_length=32)

    def deployer(self, spec: StackSpec) -> str:
        """The id of a stack's service account, of 6 to 30 characters."""
        return sanitize(f"deployer-{spec.name}", max_length=30)

    def email(self, spec: StackSpec) -> str:
        """Its address."""
        return f"{self.deployer(spec)}@{self.place.name}.iam.gserviceaccount.com"

    def role(self, spec: StackSpec) -> str:
        """The id of a stack's custom role: letters, digits, periods and underscores."""
        return "trainstack_" + re.sub(r"[^a-z0-9]", "_", sanitize(spec.name, max_length=50))

    def rights(self, spec: StackSpec) -> list[str]:
        """Permissions of a deployer on the project: its stack's, and those of `preflight`."""
        return sorted({*permissions(spec), *rights()["project"]})

    def attributes(self, trust: Pipeline) -> dict[str, str]:
        """Claims of a token that the pool keeps."""
        claim = "repository" if trust.issuer == GITHUB else "project_path"
        return {"google.subject": "assertion.sub", "attribute.repository": f"assertion.{claim}"}

    def condition(self, trust: Pipeline) -> str:
        """The condition on tokens: this repository, and one of the environments or the branch.

        Source: Google Cloud documentation, "Configure Workload Identity Federation with deployment
        pipelines".
        """
        claim = self.attributes(trust)["attribute.repository"]
        subjects = sorted({trust.subject(spec.name) for spec in self.place.specs})
        listed = ", ".join(f"'{one}'" for one in subjects)
        return f"{claim} == '{trust.repository}' && assertion.sub in [{listed}]"


def project(client: str, place: Site, trust: Trust) -> GcpProject:
    """The project of a place. Raises UserError for a trust of another cloud."""
    if not isinstance(trust, AgencyMember | Pipeline):
        fix = "Give --agency-member, --github, or --gitlab."
        rule = "is for stacks on AWS"
        raise UserError(
            [Problem("--agency-role", trust.arn, rule, fix, code="bootstrap-trust-of-other-cloud")]
        )
    return GcpProject(sanitize(client, max_length=39), place, trust)


def _of(spec: StackSpec) -> GcpSpec:
    assert isinstance(spec.on, GcpSpec)
    return spec.on
