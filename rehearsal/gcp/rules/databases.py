"""Tiers of Cloud SQL, and versions and places of GKE clusters."""

import re
from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at
from rehearsal.core.rules import open_lists
from rehearsal.core.rules.model import Violation
from rehearsal.core.rules.open_lists import ListVerdict
from rehearsal.gcp import facts
from rehearsal.gcp.rules.book import BOOK, ProjectView, block

_SQL = "gcp:sql/databaseInstance:DatabaseInstance"
_INSTANCE = _SQL.removeprefix("gcp:")
_CLUSTER, _POOL = "gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"
_TIERS = (
    "Cloud SQL documentation, Instance settings (vCPUs 1 or even up to 96; memory in steps "
    "of 256 MB, 3.75 GB or more, 0.9 to 6.5 GB for a vCPU); tiers of the API"
)
_SHARED = ("db-f1-micro", "db-g1-small")
_OF_MYSQL = ("db-n1-", "D")
_CUSTOM = re.compile(r"db-custom-(\d+)-(\d+)")
_OTHERS = re.compile(
    r"db-(n1-standard-(1|2|4|8|16|32|64|96)|n1-highmem-(2|4|8|16|32|64|96)|(perf|memory)-optimized-N-\d+"
    r"|c4a-(highmem|standard)-\d+(-lssd)?)|D(0|1|2|4|8|16|32)"
)
_MOST_CPUS, _LEAST_MB, _STEP_MB = 96, 3840, 256
_LEAST_RATIO, _MOST_RATIO = 0.9 * 1024, 6.5 * 1024
# Engine and major version: POSTGRES_15, MYSQL_8_0 (of MYSQL_8_0_36), SQLSERVER_2019 (of SQLSERVER_2019_WEB).
_MAJOR = re.compile(r"(POSTGRES|SQLSERVER|MYSQL)_(\d+(?:(?<=MYSQL_\d)_\d+)?)")
_VERSION = re.compile(r"(1\.\d+)(\.\d+(-gke\.\d+)?)?")


@BOOK.rule("GCP-SQL-008", _SQL, source=_TIERS)
def _tier(inputs: Properties) -> Iterator[Violation]:
    """The tier of an instance is one of its engine: PostgreSQL has no db-n1, SQL Server only custom ones."""
    tier, version = block(inputs.get("settings")).get("tier"), inputs.get("databaseVersion")
    if not isinstance(tier, str) or not tier:
        return
    problem = _problem(tier, version if isinstance(version, str) else "")
    if problem:
        yield Violation(
            "settings.tier",
            f"Invalid Tier ({tier}): {problem}",
            "Use db-custom-CPUS-MB, as db-custom-2-7680.",
        )


def _problem(tier: str, version: str) -> str:
    custom, found = _CUSTOM.fullmatch(tier), ""
    if custom:
        found = _custom(int(custom[1]), int(custom[2]))
    elif tier not in _SHARED and not _OTHERS.fullmatch(tier):
        found = "there is no such tier"
    elif version.startswith("POSTGRES") and tier.startswith(_OF_MYSQL):
        found = "only custom or shared-core instance Billing Tier type allowed for PostgreSQL database"
    elif version.startswith("SQLSERVER") and tier.startswith((*_SHARED, *_OF_MYSQL)):
        found = "only custom instance Billing Tier type allowed for SQL Server database"
    return found


def _custom(cpus: int, memory: int) -> str:
    if cpus > _MOST_CPUS or cpus == 0 or (cpus > 1 and cpus % 2):
        return f"{cpus} vCPUs are not 1 or an even number up to {_MOST_CPUS}"
    if memory % _STEP_MB or memory < _LEAST_MB or not _LEAST_RATIO * cpus <= memory <= _MOST_RATIO * cpus:
        return f"{memory} MB are not a multiple of {_STEP_MB}, {_LEAST_MB} or more, 0.9 to 6.5 GB for a vCPU"
    return ""


@BOOK.rule("GCP-GKE-031", _CLUSTER, source="GKE documentation, Autopilot overview (clusters are regional)")
def _autopilot(inputs: Properties) -> Iterator[Violation]:
    """An Autopilot cluster is regional."""
    location = inputs.get("location")
    if inputs.get("enableAutopilot") is True and isinstance(location, str) and location.count("-") > 1:
        message = "Autopilot clusters must be regional clusters"
        yield Violation("location", f"{message}: {location} is a zone", f"Use {location.rpartition('-')[0]}.")


@BOOK.rule(
    "GCP-GKE-032",
    _CLUSTER,
    _POOL,
    source="infra/catalog/gcp/tables/gke.toml; GKE API, Cluster (version aliases)",
)
def _version(inputs: Properties) -> Iterator[Violation]:
    """A version is latest, 1.X, 1.X.Y or 1.X.Y-gke.N of a minor version that GKE still has, or newer."""
    for name in ("minMasterVersion", "nodeVersion", "version"):
        value = inputs.get(name)
        if not isinstance(value, str) or value in ("", "latest", "-"):
            continue
        form, minors = _VERSION.fullmatch(value), list(facts.catalog().gke.minors)
        if form is None or open_lists.version(form[1], minors) is ListVerdict.WRONG:
            yield Violation(
                name, f'Version "{value}" is invalid or not supported', f"GKE has {', '.join(minors)}."
            )


@BOOK.rule(
    "GCP-SQL-012",
    _SQL,
    source="hashicorp/terraform-provider-google google/services/sql/resource_sql_database_instance.go "
    "(pitrSupportDbCustomizeDiff); terraform-google-modules/terraform-google-sql-db issue 562 (text)",
)
def _binary_log(inputs: Properties) -> Iterator[Violation]:
    """MySQL recovers to a point in time, and is highly available, with its binary log."""
    version, settings = inputs.get("databaseVersion"), block(inputs.get("settings"))
    if not isinstance(version, str) or not version.startswith("MYSQL"):
        return
    path, backups = "settings.backupConfiguration", settings.get("backupConfiguration")
    if block(backups).get("pointInTimeRecoveryEnabled") is True:
        yield Violation(
            f"{path}.pointInTimeRecoveryEnabled",
            "point_in_time_recovery_enabled is only available for POSTGRES and SQLSERVER",
            "Set binaryLogEnabled instead.",
        )
    log = False if backups is None else block(backups).get("binaryLogEnabled", False)
    alone = not any(inputs.get(name) is not None for name in ("masterInstanceName", "clone"))
    if settings.get("availabilityType") == "REGIONAL" and alone and log is False and backups is not UNKNOWN:
        yield Violation(
            f"{path}.binaryLogEnabled",
            "Invalid flag for instance role: MySQL HA non-replica instances need to have binary logging "
            "enabled.",
            "Set enabled and binaryLogEnabled.",
            "invalid",
        )


@BOOK.rule_around("GCP-SQL-013", _SQL, source="hashicorp/terraform-provider-google issue 4776 (text)")
def _root_password(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """An instance of SQL Server begins with a password of its root user."""
    if world.current(_INSTANCE) or world.find(inputs.get("name"), _INSTANCE):
        return  # An instance that exists has one, which its program may not know.
    version, others = inputs.get("databaseVersion"), ("masterInstanceName", "clone")
    given = any(inputs.get(name) is not None for name in ("rootPassword", "rootPasswordWo", *others))
    if isinstance(version, str) and version.startswith("SQLSERVER") and not given:
        yield Violation("rootPassword", "Missing parameter: Root Password.", "Give a password.", "required")


@BOOK.rule_around(
    "GCP-SQL-014",
    _SQL,
    source="GoogleCloudPlatform/magic-modules#18439, hashicorp/terraform-provider-google issue 13402",
)
def _storage_type_stays(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The disk of an instance stays SSD or HDD; the provider no longer replaces the instance."""
    before, path = world.current(_INSTANCE), "settings.diskType"
    old, new = (at(one, path) for one in (before.inputs if before else {}, inputs))
    if isinstance(old, str) and isinstance(new, str):
        kinds = {one.upper().replace("-", "_") for one in (old, new)}
        if kinds == {"PD_SSD", "PD_HDD"}:
            message = "Invalid request: the storage type of an instance cannot be changed"
            yield Violation(path, message, "Make another instance.", "invalid")


@BOOK.rule_around(
    "GCP-SQL-015",
    _SQL,
    source="Cloud SQL documentation, Upgrade the database major version in-place (no way back); "
    "GaloyMoney/drua pull request 414",
)
def _version_goes_up(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The major version of an instance goes up only; the provider updates it in place."""
    before, path = world.current(_INSTANCE), "databaseVersion"
    old, new = (_MAJOR.match(str(one.get(path))) for one in (before.inputs if before else {}, inputs))
    if old and new and old[1] == new[1] and _numbers(new[2]) < _numbers(old[2]):
        message = (
            f"Invalid request: the major version of an instance does not go down, from {old[0]} to {new[0]}"
        )
        yield Violation(path, message, "Make another instance, and import the data.", "invalid")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split("_")]
