"""RDS instances: passwords, names, storage."""

import re
from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import number, text
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation

_INSTANCE, _CLUSTER = "aws:rds/instance:Instance", "aws:rds/cluster:Cluster"
_API = "botocore 1.44.5 rds/2014-10-31 CreateDBInstanceMessage"
_GUIDE = "Amazon RDS User Guide, CHAP_Storage (DB instance storage)"
# Longest password by the first letters of an engine.
_LONGEST = {
    "mysql": 41,
    "mariadb": 41,
    "aurora-mysql": 41,
    "oracle": 30,
    "postgres": 128,
    "aurora-postgresql": 99,
    "sqlserver": 128,
    "db2": 255,
}
_SHORTEST = 8
_PASSWORD = re.compile(r"[!-~]*")
_RESERVED = {"postgres": ("admin", "rdsadmin"), "aurora-postgresql": ("admin", "rdsadmin")}
_PROVISIONED = ("io1", "io2")
# Lowest and highest size in GiB by storage type. For gp2 the guide has 20, and the service takes less:
# acceptance tests of hashicorp/terraform-provider-aws create instances of 5 and 10 GiB.
_SIZES = {
    "gp2": (5, 65536),
    "gp3": (20, 65536),
    "io1": (100, 65536),
    "io2": (100, 65536),
    "standard": (5, 3072),
}
# From this size on, gp3 storage has IOPS and throughput of choice.
_CHOICE = {"mysql": 400, "mariadb": 400, "postgres": 400, "db2": 400, "oracle": 200}
_NAMED = ("mysql", "mariadb", "postgres", "aurora-mysql", "aurora-postgresql")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DAY, _DAYS = 24 * 60, ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAILY = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")
_WEEKLY = re.compile(rf"({'|'.join(_DAYS)}):(\d\d):(\d\d)-({'|'.join(_DAYS)}):(\d\d):(\d\d)")
_RATIOS = {"io1": 50, "io2": 1000}
_LEAST_IOPS = 1000


def _engine(inputs: Properties) -> str:
    return text(inputs.get("engine")) or ""


def _of(table: dict[str, int], engine: str) -> int | None:
    """The row of the engine's family; None for an unknown engine."""
    return next((value for name, value in table.items() if engine.startswith(name)), None)


@BOOK.rule("AWS-RDS-030", _INSTANCE, _CLUSTER, source=f"{_API} (MasterUserPassword)")
def password(inputs: Properties) -> Iterator[Violation]:
    """A password has 8 or more printable characters, as many as the engine takes, without / @ " and space."""
    for name in ("password", "masterPassword"):
        value, longest = text(inputs.get(name)), _of(_LONGEST, _engine(inputs))
        if value is None:
            continue
        if len(value) < _SHORTEST or (longest and len(value) > longest):
            message = "The parameter MasterUserPassword is not a valid password because it is "
            wrong = (
                "shorter than 8 characters" if len(value) < _SHORTEST else f"longer than {longest} characters"
            )
            yield Violation(name, message + wrong, "", "InvalidParameterValue")
        elif not _PASSWORD.fullmatch(value) or set('/@"') & set(value):
            message = (
                "The parameter MasterUserPassword is not a valid password. Only printable ASCII characters "
                "besides '/', '@', '\"', ' ' may be used"
            )
            yield Violation(name, message, "", "InvalidParameterValue")


@BOOK.rule(
    "AWS-RDS-031", _INSTANCE, _CLUSTER, source=f"{_API} (MasterUsername); hashicorp/terraform issue 7264"
)
def user_name(inputs: Properties) -> Iterator[Violation]:
    """The name of the first user begins with a letter, and is no reserved word of the engine."""
    for name in ("username", "masterUsername"):
        value = text(inputs.get(name))
        if value is None:
            continue
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.@-]*", value):
            yield Violation(
                name, f"{value} is not a valid name: it begins with a letter", "", "InvalidParameterValue"
            )
        elif value.lower() in ("rdsadmin", *_RESERVED.get(_engine(inputs), ())):
            message = f"MasterUsername {value} cannot be used as it is a reserved word used by the engine"
            yield Violation(name, message, "Choose another name.", "InvalidParameterValue")


@BOOK.rule("AWS-RDS-032", _INSTANCE, source=f"{_GUIDE}; {_API} (AllocatedStorage)")
def storage_size(inputs: Properties) -> Iterator[Violation]:
    """The storage of an instance has a size that its type has."""
    given = inputs.get("storageType")
    kind = text(given) if given is not None else ("io1" if inputs.get("iops") else "gp2")
    size, span = number(inputs.get("allocatedStorage")), _SIZES.get(kind or "")
    replica = inputs.get("replicateSourceDb") is not None or inputs.get("snapshotIdentifier") is not None
    if size is not None and span and not replica and not span[0] <= size <= span[1]:
        near = span[0] if size < span[0] else span[1]
        message = (
            f"Invalid storage size for engine name {_engine(inputs)} and storage type {kind}: {size:.0f}"
        )
        yield Violation(
            "allocatedStorage", message, f"The nearest is {near} GiB.", "InvalidParameterCombination"
        )


@BOOK.rule("AWS-RDS-033", _INSTANCE, source=_GUIDE)
def storage_iops(inputs: Properties) -> Iterator[Violation]:
    """Provisioned storage needs IOPS that fit its size; gp2 takes none."""
    kind, iops = text(inputs.get("storageType")), number(inputs.get("iops"))
    size = number(inputs.get("allocatedStorage"))
    if kind in _PROVISIONED and inputs.get("iops") is None and inputs.get("snapshotIdentifier") is None:
        yield Violation("iops", f"{kind} storage needs it", "", "InvalidParameterCombination")
    elif kind in _PROVISIONED and iops is not None and size is not None:
        most = size * _RATIOS[kind]
        if not _LEAST_IOPS <= iops <= most:
            message = f"{kind} storage of {size:.0f} GiB has {_LEAST_IOPS} to {most:.0f} IOPS, not {iops:.0f}"
            yield Violation("iops", message, "", "InvalidParameterCombination")
    elif kind in ("gp2", "standard") and iops:
        yield Violation(
            "iops", f"{kind} storage takes none", "Use gp3 or io2.", "InvalidParameterCombination"
        )


@BOOK.rule("AWS-RDS-034", _INSTANCE, source=f"{_GUIDE} (gp3: baseline performance below the striping size)")
def gp3_of_choice(inputs: Properties) -> Iterator[Violation]:
    """Below 400 GiB (Oracle: 200) gp3 storage has its IOPS and throughput by size, none of choice."""
    least, size = _of(_CHOICE, _engine(inputs)), number(inputs.get("allocatedStorage"))
    if inputs.get("storageType") != "gp3" or least is None or size is None or size >= least:
        return
    for name in ("iops", "storageThroughput"):
        if number(inputs.get(name)):
            message = (
                f"You can't specify IOPS or storage throughput for engine {_engine(inputs)} and a storage "
                f"size less than {least}"
            )
            yield Violation(name, message, "Leave it out.", "InvalidParameterCombination")


@BOOK.rule("AWS-RDS-035", _INSTANCE, source=f"{_API} (MaxAllocatedStorage)")
def storage_grows(inputs: Properties) -> Iterator[Violation]:
    """Storage that grows by itself has a maximum above its size; 0 is none."""
    size, most = number(inputs.get("allocatedStorage")), number(inputs.get("maxAllocatedStorage"))
    if size is not None and most and most <= size:
        message = f"Max storage size must be greater than storage size: {most:.0f} is not above {size:.0f}"
        yield Violation("maxAllocatedStorage", message, "", "InvalidParameterCombination")


@BOOK.rule(
    "AWS-RDS-041",
    _INSTANCE,
    _CLUSTER,
    source="hashicorp/terraform-provider-aws issues 1137 and 38528 (text); aws/aws-cdk issue 22304 (_)",
)
def name_of_the_database(inputs: Properties) -> Iterator[Violation]:
    """The first database has a name of letters, digits and underscores, which does not begin with a digit."""
    if str(inputs.get("engine")) not in _NAMED:
        return
    for path in ("dbName", "databaseName"):
        name = text(inputs.get(path))
        if name and not _NAME.fullmatch(name):
            shown = {"dbName": "DBName", "databaseName": "DatabaseName"}[path]
            yield Violation(
                path,
                f"{shown} must begin with a letter and contain only alphanumeric characters: {name}",
                f"Write {re.sub('[^A-Za-z0-9_]', '_', name)}.",
                "InvalidParameterValue",
            )


@BOOK.rule("AWS-RDS-042", _INSTANCE, source="hashicorp/terraform-provider-aws issue 49828, pull request 7046")
def windows_are_apart(inputs: Properties) -> Iterator[Violation]:
    """The backup window of every day does not overlap the weekly maintenance window."""
    daily = _DAILY.fullmatch(text(inputs.get("backupWindow")) or "")
    weekly = _WEEKLY.fullmatch((text(inputs.get("maintenanceWindow")) or "").lower())
    if not daily or not weekly or not number(inputs.get("backupRetentionPeriod")):
        return
    first = _minutes(daily[1], daily[2])
    length = (_minutes(daily[3], daily[4]) - first) % _DAY
    start = _DAYS.index(weekly[1]) * _DAY + _minutes(weekly[2], weekly[3])
    end = _DAYS.index(weekly[4]) * _DAY + _minutes(weekly[5], weekly[6])
    lasts = (end - start) % (7 * _DAY)
    # Two spans of a circle overlap when one begins inside the other.
    backups = [day * _DAY + first for day in range(7)]
    if any((one - start) % (7 * _DAY) < lasts or (start - one) % (7 * _DAY) < length for one in backups):
        yield Violation(
            "backupWindow",
            "The backup window and maintenance window must not overlap.",
            f"The maintenance window is {inputs['maintenanceWindow']}.",
            "InvalidParameterValue",
        )


@BOOK.rule_around(
    "AWS-RDS-043",
    _INSTANCE,
    source=f"{_GUIDE}; 18F/analytics-reporter issue 1064 (storage does not get less); "
    "hashicorp/terraform-provider-aws internal/service/rds/instance.go (DiffSuppressFunc of the storage)",
)
def storage_only_grows(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An instance keeps its storage or gets more; below what it has by autoscaling, the provider keeps it."""
    before = site.current("rds/instance:Instance")
    old = number(before.outputs.get("allocatedStorage")) if before else None
    new, most = (number(inputs.get(name)) for name in ("allocatedStorage", "maxAllocatedStorage"))
    if old is not None and new is not None and new < old and (most or 0) <= new:
        yield Violation(
            "allocatedStorage",
            f"The storage of an instance cannot be reduced: it has {old:g} GiB, and {new:g} are requested",
            "Make another instance, and move the data.",
            "InvalidParameterCombination",
        )


def _minutes(hours: str, minutes: str) -> int:
    return int(hours) * 60 + int(minutes)
