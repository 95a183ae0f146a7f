"""Service accounts, keys, labels, databases, and budgets."""

import re
from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.gcp import service_agents
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, without_services

_DOCS = "hashicorp/terraform-provider-google@e03b7622: website/docs/r/"
_SQL, _BUDGET = "gcp:sql/databaseInstance:DatabaseInstance", "gcp:billing/budget:Budget"
_PLUS_TIERS = ("db-perf-optimized-N-", "db-memory-optimized-N-", "db-c4a-")
# Letters of any script are letters here, capitals are not.
_LABEL_KEY, _LABEL_VALUE = re.compile(r"[^\W\d_][-\w]{0,62}"), re.compile(r"[-\w]{0,63}")
_MEMBER = re.compile(
    r"(user|serviceAccount|group|domain|projectOwner|projectEditor|projectViewer):.+"
    r"|principal(Set)?://.+|principalHierarchy://.+"
)
_LABELS = ("labels", "resourceLabels")
_LABELLED = (
    "gcp:bigquery/dataset:Dataset",
    "gcp:compute/address:Address",
    "gcp:compute/disk:Disk",
    "gcp:container/cluster:Cluster",
    "gcp:compute/instance:Instance",
    "gcp:storage/bucket:Bucket",
    "gcp:filestore/instance:Instance",
    "gcp:lustre/instance:Instance",
    "gcp:artifactregistry/repository:Repository",
    "gcp:kms/cryptoKey:CryptoKey",
    "gcp:secretmanager/secret:Secret",
    "gcp:pubsub/topic:Topic",
    "gcp:pubsub/subscription:Subscription",
    "gcp:workbench/instance:Instance",
    "gcp:cloudrunv2/service:Service",
)


_MEMBERSHIPS = (
    "gcp:projects/iAMMember:IAMMember",
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "gcp:storage/managedFolderIamMember:ManagedFolderIamMember",
    "gcp:serviceaccount/iAMMember:IAMMember",
    "gcp:secretmanager/secretIamMember:SecretIamMember",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
    "gcp:pubsub/topicIAMMember:TopicIAMMember",
    "gcp:cloudrunv2/serviceIamMember:ServiceIamMember",
    "gcp:workbench/instanceIamMember:InstanceIamMember",
    "gcp:iap/webCloudRunServiceIamMember:WebCloudRunServiceIamMember",
)


@BOOK.rule("GCP-IAM-002", *_MEMBERSHIPS, source=f"{_DOCS}google_project_iam (member/members)")
def _member(inputs: Properties) -> Iterator[Violation]:
    """A member has a kind, such as user, serviceAccount, group or principalSet."""
    member = inputs.get("member")
    if not isinstance(member, str) or member in ("allUsers", "allAuthenticatedUsers"):
        return
    if not _MEMBER.fullmatch(member):
        fix = f'Write "serviceAccount:{member}".' if "gserviceaccount.com" in member else ""
        yield Violation("member", f"{member!r} has no kind such as user: or serviceAccount:", fix)


@BOOK.rule(
    "GCP-LABEL-001",
    *_LABELLED,
    source="googleapis Labels reference as in retail_v2 labels (Requirements for labels, Resource Manager)",
)
def _labels(inputs: Properties) -> Iterator[Violation]:
    """Labels are at most 63 lowercase letters, digits, dashes and underscores, keys with a letter first."""
    labels = [
        (f"{name}.{key}", key, value) for name in _LABELS for key, value in block(inputs.get(name)).items()
    ]
    for path, key, value in labels:
        fits = _LABEL_KEY.fullmatch(key) and key == key.lower()
        if not fits:
            yield Violation(path, f"label key {key!r} must match [a-z][a-z0-9_-]{{0,62}}")
        plain = isinstance(value, str)
        if plain and (not _LABEL_VALUE.fullmatch(value) or value != value.lower()):
            yield Violation(path, f"label value {value!r} must match [a-z0-9_-]{{0,63}}")


@BOOK.rule("GCP-SQL-001", _SQL, source=f"{_DOCS}sql_database_instance (edition)")
def _edition(inputs: Properties) -> Iterator[Violation]:
    """Enterprise Plus takes db-perf-optimized tiers only."""
    settings = block(inputs.get("settings"))
    tier = settings.get("tier")
    plus = settings.get("edition") == "ENTERPRISE_PLUS"
    if plus and isinstance(tier, str) and not tier.startswith(_PLUS_TIERS):
        yield Violation("settings.tier", f"{tier} is not valid for ENTERPRISE_PLUS (db-perf-optimized-N-*)")


@BOOK.rule(
    "GCP-SQL-005",
    _SQL,
    source="Cloud SQL documentation, Introduction to editions; words as public logs show them",
)
def _default_edition(inputs: Properties) -> Iterator[Violation]:
    """From PostgreSQL 16 on, an instance that names no edition is of Enterprise Plus, with its tiers."""
    settings = block(inputs.get("settings"))
    major = re.fullmatch(r"POSTGRES_(\d+)", str(inputs.get("databaseVersion")))
    tier = settings.get("tier")
    if major is None or int(major[1]) < 16 or "edition" in settings or not isinstance(tier, str):
        return
    if not tier.startswith(_PLUS_TIERS):
        yield Violation(
            "settings.tier",
            f"Invalid Tier ({tier}) for (ENTERPRISE_PLUS) Edition. Use a predefined Tier like "
            "db-perf-optimized-N-* instead",
            "Set settings.edition to ENTERPRISE.",
            "invalidRequest",
        )


@BOOK.rule("GCP-SQL-002", _SQL, source=f"{_DOCS}sql_database_instance (ip_configuration)")
def _address(inputs: Properties) -> Iterator[Violation]:
    """An instance has a public address or a private network, unless it uses private service connect."""
    network = block(block(inputs.get("settings")).get("ipConfiguration"))
    if (
        network.get("ipv4Enabled") is False
        and "privateNetwork" not in network
        and not network.get("pscConfigs")
    ):
        yield Violation("settings.ipConfiguration.privateNetwork", "must be given when ipv4Enabled is false")


@BOOK.rule_around("GCP-SQL-003", _SQL, source=f"{_DOCS}sql_database_instance (private IP: depends_on)")
def _private(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A private instance needs a service networking connection in its network."""
    value = block(block(inputs.get("settings")).get("ipConfiguration")).get("privateNetwork")
    network = without_services(value, world)
    if network is not None:
        yield Violation(
            "settings.ipConfiguration.privateNetwork",
            f"{network.id} has no service networking connection",
            "Create a servicenetworking.Connection first and let the instance depend on it.",
            "invalidRequest",
        )


@BOOK.rule("GCP-SQL-004", _SQL, source=f"{_DOCS}sql_database_instance (disk_size)")
def _disk(inputs: Properties) -> Iterator[Violation]:
    """A data disk has at least 10 GB, a Hyperdisk 20."""
    settings = block(inputs.get("settings"))
    size, least = settings.get("diskSize"), 20 if settings.get("diskType") == "HYPERDISK_BALANCED" else 10
    if isinstance(size, int | float) and size < least:
        yield Violation("settings.diskSize", f"{int(size)} GB is below the minimum of {least}")


@BOOK.rule_around(
    "GCP-IAM-004",
    *_MEMBERSHIPS,
    source="hashicorp/terraform-provider-google google/tpgiamresource/iam.go (gives up on a member that does "
    "not exist); IAM documentation, Service agents (created some time after the API is enabled)",
)
def _agent(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The agent of a service is no member before a time after it is created, as by a service identity."""
    member = inputs.get("member")
    if world.preview or not isinstance(member, str):
        return
    email = member.removeprefix("serviceAccount:")
    made = world.all("projects/serviceIdentity:ServiceIdentity")
    known = {one.outputs.get("email") for one in made if world.effective(one)}
    absent = service_agents.created_on_request(world.number) - known
    if email in absent or not world.effective(email):
        yield Violation(
            "member",
            f"Error 400: Service account {email} does not exist.",
            "Create a projects.ServiceIdentity for its API, and this resource a minute later.",
            "badRequest",
        )


@BOOK.rule_around(
    "GCP-SQL-007",
    "gcp:sql/user:User",
    source="hashicorp/terraform-provider-google issues 14221 (text) and 14233 (open: the provider does not "
    "retry); GoogleCloudPlatform/magic-modules pull request 7638 (10 seconds suffice)",
)
def _iam_user(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A user of IAM needs the role of such users, which an instance has some seconds after its creation."""
    instance = world.find(inputs.get("instance"), "sql/databaseInstance:DatabaseInstance")
    if world.preview or instance is None or not str(inputs.get("type")).startswith("CLOUD_IAM_"):
        return
    flags = block(instance.inputs.get("settings")).get("databaseFlags") or ()
    logs_in = any(
        one.get("name") == "cloudsql.iam_authentication" and one.get("value") == "on" for one in flags
    )
    if not logs_in or not world.effective(instance):
        name = inputs.get("name")
        yield Violation(
            "type",
            f"Error, failed to insert user {name} into instance {instance.name}: googleapi: Error 400: "
            f'Invalid request: failed to create user "{name}": role "cloudsqliamuser" does not exist.',
            "Set the flag cloudsql.iam_authentication, and create the user half a minute after the instance.",
            "invalid",
        )
