"""The base of every part of a spec, and the types that several parts share."""

import re
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from infra.catalog.aws.releases import ADDON_VERSION, NODE_IMAGE

T = TypeVar("T")

FORMS: dict[str, str] = {}
"""Description of a string format by its regular expression."""


def _form(pattern: str, description: str) -> Any:
    FORMS[pattern] = description
    return StringConstraints(pattern=pattern)


Name = Annotated[
    str,
    _form(
        r"^[a-z][a-z0-9-]{0,30}[a-z0-9]$",
        "2 to 32 lower-case letters, digits and dashes, a letter first and no dash last",
    ),
]
"""The name of a part of a stack."""

AccountId = Annotated[str, _form(r"^[0-9]{12}$", "12 digits, in quotes")]
"""The number of an AWS account."""

Duration = Annotated[
    str, _form(r"^[1-9][0-9]{0,5}[smh]$", "a whole number above 0 with its unit, such as 900s, 15m or 1h")
]
"""A length of time."""

Image = Annotated[
    str,
    _form(
        r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+(:[\w.-]+)?@sha256:[0-9a-f]{64}$",
        "an image pinned by digest: registry/repository[:tag]@sha256:<64 hex digits>",
    ),
]
"""A container image pinned by digest."""

Email = Annotated[str, _form(r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "an e-mail address such as ml@example.com")]
"""An e-mail address."""

SecretKey = Annotated[
    str,
    _form(
        r"^[a-z][a-z0-9._-]{0,29}$",
        "the name of a key of a Secret, 1 to 30 characters such as pagerduty; never the credential itself",
    ),
]
"""A key of a Secret: shorter than the credentials of paging services, which would be stored in a file."""

WebAddress = Annotated[
    str,
    _form(
        r"^https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~%/-]*)?$",
        "an address such as https://git.example.com/ml/trainstack/docs/runbooks, without login or query",
    ),
]
"""The address of a folder of web pages."""

KubernetesVersion = Annotated[str, _form(r"^1\.\d+$", "a minor version of Kubernetes such as 1.36")]
"""A minor version of Kubernetes."""

SlurmVersion = Annotated[
    str, _form(r"^[0-9]{2}\.(0[2-9]|1[01])$", "year and month of a release such as 25.11")
]
"""A version of Slurm."""

ImageId = Annotated[
    str, _form(r"^ami-[0-9a-f]{8,17}$", "the id of a machine image: ami- and 8 to 17 hex digits")
]
"""The id of a machine image of EC2."""

LdapsUri = Annotated[
    str, _form(r"^ldaps://[A-Za-z0-9.-]+(:[0-9]+)?$", "an address such as ldaps://ldap.example.com")
]
"""The address of a directory by LDAP over TLS."""

LdapBase = Annotated[str, _form(r"^[A-Za-z]+=[^\s\[\]]+$", "a name such as dc=example,dc=com")]
"""The base of searches in a directory."""

FilePath = Annotated[str, _form(r"^/[^\s#\"']+$", "an absolute path without spaces, quotes and #")]
"""The path of a file."""

AddonVersion = Annotated[str, _form(ADDON_VERSION, "a version such as v1.14.2-eksbuild.4")]
"""The version of an add-on of EKS."""

NodeImage = Annotated[str, _form(NODE_IMAGE, "a release such as 1.35.6-20260714")]
"""A release of EKS's node images."""

PolicyArn = Annotated[
    str,
    _form(
        r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$",
        "the ARN of a managed policy: arn:aws:iam::<account>:policy/<name>",
    ),
]
"""A managed policy of IAM."""

RoleArn = Annotated[
    str,
    _form(
        r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$",
        "the ARN of a role: arn:aws:iam::<account>:role/<name>",
    ),
]
"""A role of IAM."""

ExternalId = Annotated[
    str, _form(r"^[A-Za-z0-9_+=,.@:/-]{2,1224}$", "2 to 1224 letters, digits and characters of _+=,.@:/-")
]
"""An external id that the trust policy of a role demands (botocore 1.44.5 sts/2011-06-15 externalIdType)."""

KeyArn = Annotated[
    str,
    _form(
        r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})$",
        "the ARN of a key, no alias: arn:aws:kms:<region>:<account>:key/<id>",
    ),
]
"""A key of AWS KMS."""

FaultName = Annotated[str, _form(r"^[A-Za-z][A-Za-z0-9]*$", "a single word such as NvidiaXID79Error")]
"""Name of a node fault in its monitor."""

HostName = Annotated[
    str,
    _form(
        r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$",
        "a full host name in lower case such as mlflow.example.com",
    ),
    Field(max_length=253),
]
"""Host name of a service."""

HttpsUrl = Annotated[
    str, _form(r"^https://[^\s/?#@]+(/\S*)?$", "an address such as https://login.example.com/token")
]
"""An https URL."""

CertificateArn = Annotated[
    str,
    _form(
        r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[0-9a-f-]{36}$",
        "the ARN of a certificate in ACM: arn:aws:acm:<region>:<account>:certificate/<id>",
    ),
]
"""A certificate of AWS Certificate Manager."""

SecretArn = Annotated[
    str,
    _form(
        r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$",
        "the whole ARN of a secret: arn:aws:secretsmanager:<region>:<account>:secret:<name>-<6 characters>",
    ),
]
"""A secret of AWS Secrets Manager, with the six characters that the service adds to its name."""

ProjectId = Annotated[
    str,
    _form(
        r"^[a-z][a-z0-9-]{4,28}[a-z0-9]$",
        "6 to 30 lower-case letters, digits and dashes, a letter first and no dash last",
    ),
]
"""The id of a project of Google Cloud."""

BillingAccount = Annotated[
    str, _form(r"^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", "an id such as 012345-6789AB-CDEF01")
]
"""A billing account of Google Cloud."""

Currency = Annotated[
    str, _form(r"^([A-TV-Z][A-Z]{2}|U[A-RT-Z][A-Z]|US[A-CE-Z])$", "a code of ISO 4217 such as EUR, not USD")
]
"""A currency other than US dollars."""

ServiceAccount = Annotated[
    str,
    _form(
        r"^[^@\s:]+@[^@\s:]+\.gserviceaccount\.com$",
        "the address of a service account: <name>@<project>.iam.gserviceaccount.com",
    ),
]
"""A service account of Google Cloud."""

OAuthClient = Annotated[
    str,
    _form(
        r"^[0-9]+-[a-z0-9]+\.apps\.googleusercontent\.com$",
        "the id of an OAuth client: <number>-<characters>.apps.googleusercontent.com",
    ),
]
"""A client of Google's OAuth 2.0."""

SecretName = Annotated[
    str,
    _form(
        r"^projects/[a-z0-9][a-z0-9-]+/secrets/[A-Za-z0-9_-]{1,255}$",
        "a secret of Secret Manager: projects/<project>/secrets/<name>",
    ),
]
"""A secret of Secret Manager."""

Principal = Annotated[
    str,
    _form(
        r"^(user|group|serviceAccount):[^@\s:]+@[^@\s]+\.[^@\s]+$",
        "`user:`, `group:` or `serviceAccount:` and an e-mail address",
    ),
]
"""An IAM principal of Google Cloud."""

DatabaseTier = Annotated[
    str, _form(r"^db-(custom-\d+-\d+|f1-micro|g1-small)$", "a tier such as db-custom-2-7680")
]
"""A machine tier of Cloud SQL."""

DiskImage = Annotated[
    str,
    _form(
        r"^projects/[a-z][a-z0-9-]+/global/images/[a-z][a-z0-9-]*$",
        "a disk image: projects/<project>/global/images/<name>",
    ),
]
"""A disk image of Compute Engine."""

ZoneName = Annotated[str, _form(r"^[a-z]+-[a-z]+\d+-[a-z]$", "a zone such as us-central1-a")]
"""A zone of Google Cloud."""

TimeOfDay = Annotated[str, _form(r"^([01]\d|2[0-3]):[0-5]\d$", "a time such as 02:00")]
"""A time of the day."""

# Pulumi's engine passes days and times that have no quotes as Go prints them:
# 2027-03-31 00:00:00 +0000 UTC.
_GO_TIME: Final = re.compile(r"^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) ([+-]\d{2})(\d{2}) \S+$")


def _day(value: Any) -> Any:
    found = _GO_TIME.match(value) if isinstance(value, str) else None
    return found[1] if found else value


def _moment(value: Any) -> Any:
    found = _GO_TIME.match(value) if isinstance(value, str) else None
    return f"{found[1]}T{found[2]}{found[3]}:{found[4]}" if found else value


Moment = Annotated[
    str,
    _form(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]\d{2}:\d{2})$", "a time such as 2026-12-01T11:30:00Z"),
    BeforeValidator(_moment),
]
"""A time of a day, with its offset from UTC; rules check that the time exists."""

Cidr = Annotated[str, _form(r"^\d+\.\d+\.\d+\.\d+/\d+$", "an IPv4 range such as 10.0.0.0/16")]
"""An IPv4 range; rules check it further."""

LastDay = Annotated[
    str,
    _form(r"^(\d{4}-\d{2}-\d{2}|never)$", "a day such as 2027-03-31, or never"),
    BeforeValidator(_day),
]
"""An end date; rules check that the day exists."""

Usd = Annotated[float, Field(gt=0)]
"""US dollars, more than zero."""

Days = Annotated[int, Field(ge=1, le=3653)]
"""A number of days, at most ten years."""


class Model(BaseModel):
    """Frozen model without extra keys; docstrings under fields are their descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class CloudModel(Model):
    """Base of the settings of one cloud. The class attributes name fields."""

    needed_by_clusters: ClassVar[tuple[str, ...]] = ()
    """Fields that a stack with a cluster must have."""
    optional_in_clusters: ClassVar[tuple[str, ...]] = ()
    """Further fields that only a stack with a cluster may have."""
    never_in_clusters: ClassVar[tuple[str, ...]] = ()
    """Fields that only a stack without a cluster may have."""
    person: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Start of the names that people have on this cloud, and on no other."""
    private_registry: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Start of images that nodes of this cloud alone pull with their own identity."""
    slurm_limits: ClassVar[bool] = True
    """The cloud's service for Slurm enforces limits of accounts."""
    managed_tracking: ClassVar[bool] = False
    """The cloud runs the tracking server of a stack without a cluster."""
    place_field: ClassVar[str] = ""
    """Field with the account or project that a stack is in; empty: there is none."""
    payer_field: ClassVar[str] = ""
    """Field with what a budget counts: all that is paid by one account."""
    login_field: ClassVar[str] = ""
    """Field with the login that another place needs; empty: one login reaches all."""


def demanded(part: T | None) -> T:
    """A part of a spec that a rule requires for the layout (`infra.stackspec.rules.parts`)."""
    assert part is not None
    return part
