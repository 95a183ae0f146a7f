"""The fleet file `fleet.yaml`: clients with their folders, backends and credentials, without a secret."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from infra.errors import Problem, UserError
from infra.stackspec import merge
from infra.stackspec.document import Branch, node, read
from infra.stackspec.model import FORMS
from infra.stackspec.problems import from_validation, placed
from trainstack.fleet import NAME

_ROLE = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/([\w+=,.@/-]|\{stack\})+$"
_ACCOUNT = (
    r"^([a-z][a-z0-9-]{4,28}[a-z0-9]|([a-z][a-z0-9-]*)?\{stack\}[a-z0-9-]*)"
    r"@[a-z0-9.:-]+\.iam\.gserviceaccount\.com$"
)
_BACKEND = r"^(file://|s3://|gs://|https?://)[^@]+$"
_CLIENT = r"^[A-Za-z][A-Za-z0-9_-]{0,38}$"
_TAG = r"^[a-z0-9][a-z0-9-]{0,30}$"
_EXTERNAL_ID = r"^[\w+=,.@:/-]+$"
FORMS |= {
    _ROLE: "the ARN of a role: arn:aws:iam::<account>:role/<name>, with {stack} for the name of the stack",
    _ACCOUNT: "the address of a service account: <name>@<project>.iam.gserviceaccount.com, "
    "with {stack} for the name of the stack",
    _BACKEND: "a URL that begins with file://, s3://, gs:// or https://, without a login in it",
    _CLIENT: "up to 39 letters, digits, - and _, a letter first",
    _TAG: "up to 31 lower-case letters, digits and dashes",
    _EXTERNAL_ID: "letters, digits, _ and +=,.@:/-",
}
SCHEMA = Path(__file__).with_name("fleet.schema.json")
"""For editors: write with `python -m trainstack.fleet.fleet_file`."""
Tag = Annotated[str, Field(pattern=_TAG)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class SecretSource(_Part):
    """Place of a secret, which is never in the fleet file itself: a file, or a command that prints it."""

    file: Path | None = None
    """A file with the secret; relative to the folder of the fleet file."""
    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Program and arguments of a command that prints the secret, such as [op, read, op://acme/pulumi]."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.file is None) == (self.command is None):
            raise ValueError("needs exactly one of file and command")
        return self


class FleetBackend(_Part):
    """The Pulumi backend that keeps the state of a client."""

    url: str = Field(pattern=_BACKEND)
    """`file:///srv/state/acme`, `s3://bucket?region=eu-west-1`, `gs://bucket` or https://api.pulumi.com."""
    organization: str = ""
    """Organization of Pulumi Cloud; empty: that of the token's user."""
    passphrase: SecretSource | None = None
    """Passphrase of the secrets of the stacks, for backends with a passphrase."""
    access_token: SecretSource | None = None
    """Access token of Pulumi Cloud."""


class AwsCredentials(_Part):
    """Login to the AWS account of a client."""

    profile: str = ""
    """Profile of the AWS configuration: the login itself or, with a role, the login that assumes it."""
    role_arn: str | None = Field(default=None, pattern=_ROLE)
    """Role to assume; without a profile, by the login of the shell, such as the OIDC token of a pipeline.

    `{stack}` is the name of the stack: `trainstack bootstrap` makes the roles deployer-{stack}.
    """
    external_id: str | None = Field(default=None, pattern=_EXTERNAL_ID, min_length=2, max_length=1224)
    """External id that the trust policy of the role requires."""
    web_identity_token_file: Path | None = None
    """File with an OIDC token, with which the role is assumed directly."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.profile and not self.role_arn:
            raise ValueError("needs a profile, a role_arn, or both")
        if not self.role_arn and (self.external_id or self.web_identity_token_file):
            raise ValueError("external_id and web_identity_token_file belong to a role_arn")
        if self.web_identity_token_file and (self.profile or self.external_id):
            raise ValueError("web_identity_token_file excludes profile and external_id")
        return self


class GoogleCredentials(_Part):
    """Login to the Google Cloud project of a client."""

    credentials_file: Path | None = None
    """Application Default Credentials (workload identity federation, service account or user).

    Default: GOOGLE_APPLICATION_CREDENTIALS of the shell, else the login of gcloud.
    """
    service_account: str | None = Field(default=None, pattern=_ACCOUNT)
    """Service account to impersonate.

    `{stack}` is the name of the stack: `trainstack bootstrap` makes the service accounts deployer-{stack}.
    """


class ClientCredentials(_Part):
    """Logins to the clouds of a client. A client without one gets no credentials of the shell."""

    aws: AwsCredentials | None = None
    """Login to AWS."""
    google: GoogleCredentials | None = None
    """Login to Google Cloud."""


class Client(_Part):
    """A client: a folder that `trainstack new` made, with its backend and credentials."""

    name: str = Field(pattern=_CLIENT)
    """Name of the client, unique in the fleet."""
    folder: Path | None = None
    """The client's folder; relative to the folder of the fleet file; default: the name."""
    stacks: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Stacks; default: all stack files of the folder."""
    backend: FleetBackend | None = None
    """Backend; default: that of the fleet. Rehearsals need none."""
    credentials: ClientCredentials = ClientCredentials()
    """Logins."""
    tags: tuple[Tag, ...] = ()
    """Tags for `--tag`; clients with the tag `canary` come first in `up`."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Further environment variables, such as HTTPS_PROXY. Never a secret."""


class Limits(_Part):
    """Limits of a fleet command."""

    workers: int | None = Field(default=None, ge=1, le=64)
    """Stacks at one time; default: from the CPUs and the free memory of the machine."""
    minutes: float = Field(default=30, gt=0, le=24 * 60)
    """Time limit of a command that changes nothing, per stack; `up` and `validate` have none."""


class Fleet(_Part):
    """An agency's fleet."""

    format: Literal[1]
    """Version of this format."""
    backend: FleetBackend | None = None
    """Backend of clients without one, reached with the credentials of each client.

    The passphrase should be one per client.
    """
    limits: Limits = Limits()
    """Limits."""
    clients: tuple[Client, ...] = Field(min_length=1)
    """The clients."""


def load(path: Path) -> Fleet:
    """Read and check a fleet file. Raises UserError with every problem."""
    if path.is_dir():
        path = path / NAME
    content = read(path, str(path))
    tree = node(content, str(path))
    if not isinstance(tree, Branch):
        rule, fix = "must be a mapping with format and clients", "See docs/how-to/fleet.md."
        raise UserError([Problem(str(path), None, rule, fix, code="fleet-file-not-mapping")])
    origins = merge.origins(tree)
    try:
        return Fleet.model_validate(merge.values(tree))
    except ValidationError as error:
        problems = placed((_readable(one) for one in from_validation(error, origins, Fleet)), origins)
        raise UserError(problems) from None


def _readable(problem: Problem) -> Problem:
    """The problem without what may be a password in a URL."""
    hidden = problem.path.endswith(".url") and "@" in str(problem.value)
    return replace(problem, value=None) if hidden else problem


def schema() -> dict[str, Any]:
    """The JSON Schema of a fleet file (draft 2020-12), for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Fleet.model_json_schema(),
        "title": "trainstack fleet file",
    }


def schema_text() -> str:
    """The text of the committed schema, `trainstack/fleet/fleet.schema.json`."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
