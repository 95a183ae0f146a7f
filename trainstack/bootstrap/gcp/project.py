"""Resources of the project: their names, roles and conditions, whichever the form."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from infra.errors import Problem, UserError
from infra.naming import sanitize
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from trainstack.bootstrap.stacks import BootstrapPlace, DeployedStacks
from trainstack.bootstrap.state import META, prefixes
from trainstack.bootstrap.trust import GITHUB, AgencyMember, Pipeline, Trust, environment
from trainstack.collect.gcp.rights import rights as rights_of_audit
from trainstack.preflight.gcp import apis
from trainstack.preflight.gcp.permissions import permissions
from trainstack.preflight.gcp.roles import rights

BILLING_ROLE = "roles/billing.costsManager"
BUCKET_ROLE = "roles/storage.legacyBucketReader"
"""Of names of objects, which have no condition: a list is a request on the bucket."""
STATE_ROLE = "roles/storage.objectUser"
STATE_READER = "roles/storage.objectViewer"
KEY_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
KEY_READER = "roles/cloudkms.cryptoKeyDecrypter"
FEDERATED = "roles/iam.workloadIdentityUser"
TOKENS = "roles/iam.serviceAccountTokenCreator"
_LONGEST_SUBJECT = 127
"""Bytes of `google.subject` (Workload Identity Federation, "Attribute mappings")."""
_READS = re.compile(r"\.(get|list|getIamPolicy)$")
_AT_ONCE = 8
"""Prefixes of a condition."""
_COUNT = "serviceusage.services.use"
_CONTENT = frozenset({"storage.objects.get"})
"""Reads of data, which previews and checks of a project do without."""
PROVIDER = "TRAINSTACK_IDENTITY_PROVIDER"
"""Variable of pipelines: where their tokens are accepted; its value has the number of the project."""
KEY_RING, KEY = "trainstack", "state"
CATEGORY = "billing"
"""Notifications of the budget contact (Essential Contacts API, NotificationCategory)."""
_APIS = (
    "cloudasset.googleapis.com", "cloudkms.googleapis.com", "essentialcontacts.googleapis.com",
    "iamcredentials.googleapis.com", "sts.googleapis.com", "storage.googleapis.com",
)  # fmt: skip
"""APIs of the setup itself and of the nightly audit, beside those of the stacks."""


@dataclass(frozen=True)
class Identity:
    """A service account, what it may do, and who may act as it."""

    account: str
    title: str
    role: str
    permissions: list[str]
    members: tuple[str, ...]
    """Subjects of the pool (`/subject/...`, `/attribute...`) for a pipeline, else whole members."""
    use: str
    """Role of the members on the account."""
    bucket: tuple[tuple[str, str], ...]
    """Roles on the bucket of the state with their conditions; an empty one is none."""
    key: str
    """Role on the key of the state."""
    deploys: bool


@dataclass(frozen=True)
class ProjectNames:
    """Names of what an administrator creates in the project of a client's stacks."""

    client: str
    place: BootstrapPlace
    project: str
    """The project of Pulumi, which names of objects of the state have."""

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
    def pool(self) -> str:
        """The workload identity pool, of 4 to 32 characters."""
        return sanitize(f"trainstack-{self.client}", max_length=32)

    def provider(self, project: str) -> str:
        """The provider of the pool; `project` is the project's id or number."""
        return f"projects/{project}/locations/global/workloadIdentityPools/{self.pool}/providers/pipeline"

    def deployer(self, name: str) -> str:
        """The id of the service account of a stack, or of a large one, of 6 to 30 characters."""
        return sanitize(f"deployer-{name}", max_length=30)

    def email(self, account: str) -> str:
        """The address of a service account."""
        return f"{account}@{self.place.name}.iam.gserviceaccount.com"

    def attributes(self, trust: Pipeline) -> dict[str, str]:
        """Claims of a token that the pool keeps; a subject of GitLab gets the environment of its job.

        Source: GitLab documentation, "ID token authentication", claim `environment`, which is optional.
        """
        if trust.issuer == GITHUB:
            return {"google.subject": "assertion.sub", "attribute.repository": "assertion.repository"}
        named = 'has(assertion.environment) ? ":environment:" + assertion.environment : ""'
        return {
            "google.subject": f"assertion.sub + ({named})",
            "attribute.repository": "assertion.project_path",
        }

    def subject(self, trust: Pipeline, name: str) -> str:
        """The subject in the pool of the deployments of a stack."""
        subject = trust.subject(name)
        return subject if trust.by_environment else f"{subject}:environment:{environment(name)}"

    def condition(self, trust: Pipeline) -> str:
        """The condition on tokens: this repository, and the subjects of its deployments, previews and checks.

        Those of GitLab's previews are of any branch.

        Source: Google Cloud documentation, "Configure Workload Identity Federation with deployment
        pipelines".
        """
        claim = self.attributes(trust)["attribute.repository"]
        repository = f"{claim} == '{trust.path}'"
        if any("*" in one for one in trust.previews):
            return f"{repository} && assertion.ref_type == 'branch'"
        deployers = {trust.subject(one.name) for one in self.place.deployed if assuming(one) is None}
        listed = ", ".join(f"'{one}'" for one in sorted({*deployers, *trust.previews, trust.main}))
        return f"{repository} && assertion.sub in [{listed}]"


@dataclass(frozen=True)
class GcpProject(ProjectNames):
    """Resources that an administrator creates in the project of a client's stacks."""

    trust: AgencyMember | Pipeline

    @property
    def apis(self) -> list[str]:
        """APIs of the stacks and of the setup."""
        wanted = (
            api
            for one in self.place.deployed
            for spec in one.specs
            for api in apis.wanted_by(spec, federated=_is_federated(one))
        )
        return sorted({*_APIS, *wanted})

    @property
    def billing_accounts(self) -> list[str]:
        """Ids of the accounts in which stacks keep budgets."""
        return sorted({_of(spec).billing_account for spec in self.place.specs})

    def role(self, name: str) -> str:
        """The id of a deployer's custom role: letters, digits, periods and underscores."""
        return "trainstack_" + re.sub(r"[^a-z0-9]", "_", sanitize(name, max_length=50))

    def rights(self, one: DeployedStacks) -> list[str]:
        """Permissions of a deployer on the project: those of its stacks, and those of `preflight`."""
        own = (right for spec in one.specs for right in permissions(spec, federated=_is_federated(one)))
        return sorted({*own, *rights()["project"]})

    def identities(self) -> list[Identity]:
        """Deployers, and what previews and nightly checks of a pipeline log in as."""
        made = [self._deployer(one) for one in self.place.deployed]
        if isinstance(self.trust, Pipeline):
            previews = tuple(f"/subject/{one}" for one in self.trust.previews)
            if any("*" in one for one in previews):
                previews = (f"/attribute.repository/{self.trust.repository}",)
            made.append(self._reader("preview", previews, ()))
            audited = [*rights_of_audit()["project"]]
            made.append(self._reader("nightly", (f"/subject/{self.trust.main}",), audited))
        return made

    def _deployer(self, one: DeployedStacks) -> Identity:
        if host := assuming(one):
            account = f"{self.deployer(one.name)}@{_of(host).project}.iam.gserviceaccount.com"
            members, use = (f"serviceAccount:{account}",), TOKENS
        elif isinstance(self.trust, Pipeline):
            members, use = (f"/subject/{self.subject(self.trust, one.name)}",), FEDERATED
        else:
            members, use = (self.trust.member,), TOKENS
        objects = f"projects/_/buckets/{self.bucket}/objects/"
        own = [
            f'resource.name.startsWith("{objects}{start}")'
            for name in one.states
            for start in prefixes(self.project, name)
        ]
        meta = f'resource.name == "{objects}{META}"'
        # A condition has at most twelve operators (IAM documentation, "Quotas and limits").
        parts = [" || ".join(own[at : at + _AT_ONCE]) for at in range(0, len(own), _AT_ONCE)]
        conditions = [f"{parts[0]} || {meta}", *parts[1:]]
        return Identity(
            self.deployer(one.name), f"Deployer of {one.name}", self.role(one.name), self.rights(one),
            members, use, ((BUCKET_ROLE, ""), *((STATE_ROLE, one) for one in conditions)), KEY_ROLE,
            deploys=True,
        )  # fmt: skip

    def _reader(self, name: str, members: tuple[str, ...], more: Sequence[str]) -> Identity:
        asked = {*rights()["project"], *more}
        for spec in self.place.specs:
            asked |= {*permissions(spec)}
        reads = sorted(one for one in asked - _CONTENT if _READS.search(one) or one in {*more, _COUNT})
        role = "trainstackReads_" + re.sub(
            r"[^a-z0-9]", "_", sanitize(f"{self.client}-{name}", max_length=40)
        )
        return Identity(
            sanitize(f"{name}-{self.client}", max_length=30), f"Reader of {self.client}, {name}", role, reads,
            members, FEDERATED, ((STATE_READER, ""),), KEY_READER, deploys=False,
        )  # fmt: skip


def assuming(one: DeployedStacks) -> StackSpec | None:
    """The large stack whose deployer acts as that of its clusters here.

    None where they have another deployer: those who act as the account that the large stack names act as
    that of the clusters, too.
    """
    return None if one.host is None or _of(one.host).impersonate else one.host


def is_of_pool(who: str) -> bool:
    """Return whether a member of an identity is one of the pool's."""
    return who.startswith("/")


def _is_federated(one: DeployedStacks) -> bool:
    """Return whether the large stack of clusters is on another cloud, whose identities log in by a pool."""
    return one.manager is not None and one.host is None


def principal(pool: str, who: str) -> str:
    """The member of IAM for a subject, or for the tokens that share an attribute."""
    return (pool if who.startswith("/subject/") else pool.replace("principal:", "principalSet:")) + who


def project(client: str, place: BootstrapPlace, trust: Trust) -> GcpProject:
    """The project of a place. Raises UserError for a trust of another cloud."""
    if not isinstance(trust, AgencyMember | Pipeline):
        fix = "Give --agency-member, --github, or --gitlab."
        rule = "is for stacks on AWS"
        raise UserError(
            [Problem("--agency-role", trust.arn, rule, fix, code="bootstrap-trust-of-other-cloud")]
        )
    made = GcpProject(short(client), place, client, trust)
    if isinstance(trust, Pipeline):
        subjects = (trust.main, *(made.subject(trust, one.name) for one in place.deployed))
        longest = max(subjects, key=len)
        if len(longest) > _LONGEST_SUBJECT:
            rule = f"makes subjects of more than {_LONGEST_SUBJECT} characters, such as {longest}"
            fix = "Use a shorter path, branch or name of the stack."
            option = "--github" if trust.issuer == GITHUB else "--gitlab"
            raise UserError([Problem(option, trust.repository, rule, fix, code="bootstrap-subject-too-long")])
    return made


def short(client: str) -> str:
    """The client in names of resources."""
    return sanitize(client, max_length=39)


def _of(spec: StackSpec) -> GcpSpec:
    assert isinstance(spec.on, GcpSpec)
    return spec.on
