"""Credentials of one client, in files of its own: what else the shell or its configuration has stays out.

The SDKs of AWS take a role, an external id and their renewal from a profile, so a client gets a configuration
with this profile and those that it refers to. Those of Google Cloud take impersonation from the file of the
Application Default Credentials.
"""

import configparser
import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from trainstack.fleet.fleet_file import AwsCredentials, GoogleCredentials, SecretSource

_PROFILE, _SOURCE = "fleet", "fleet-source"
_SECRET_S = 60
_CONTAINER = (
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
)
_IMPERSONATE = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{}:generateAccessToken"
_USABLE = ("authorized_user", "service_account", "external_account", "external_account_authorized_user")


def secret(source: SecretSource, what: str, base: Path, shell: Mapping[str, str]) -> str:
    """The secret at its place. Raises UserError, without anything that the command printed to its output."""
    if source.file:
        try:
            return (base / source.file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise _problem(what, str(source.file), f"cannot be read: {reason}", "Create the file.") from None
    assert source.command
    program = source.command[0]
    try:
        done = subprocess.run(
            source.command, cwd=base, env=dict(shell), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=_SECRET_S, check=False,
        )  # fmt: skip
    except OSError as error:
        raise _problem(what, program, f"cannot be run: {error.strerror}", "Install the program.") from None
    except subprocess.TimeoutExpired:
        rule, fix = f"has not ended in {_SECRET_S} s", "Log in to the secret store before."
        raise _problem(what, program, rule, fix) from None
    found = done.stdout.rstrip("\r\n")
    if done.returncode or not found:
        rule = f"ended with exit code {done.returncode}" if done.returncode else "printed nothing"
        fix = f"Run this command in {base}, and correct it."
        raise _problem(what, program, rule, fix)
    return found


def aws(login: AwsCredentials, home: Path, base: Path, shell: Mapping[str, str]) -> dict[str, str]:
    """Write the configuration of an AWS login into a home; returns its variables. Raises UserError."""
    config = configparser.RawConfigParser(default_section="\0")
    variables: dict[str, str] = {}
    if login.profile:
        _copy_profile(login.profile, config, home, shell)
    if login.role_arn:
        role = {"role_arn": login.role_arn, "role_session_name": "trainstack-fleet"}
        if login.external_id:
            role["external_id"] = login.external_id
        if login.web_identity_token_file:
            role["web_identity_token_file"] = str(base / login.web_identity_token_file)
        elif login.profile:
            role["source_profile"] = login.profile
        else:
            role |= _source_of_shell(config, variables, shell)
        config[f"profile {_PROFILE}"] = role
    folder = home / ".aws"
    folder.mkdir(exist_ok=True)
    with _private(folder / "config") as file:
        config.write(file)
    return {
        **variables,
        "AWS_PROFILE": _PROFILE if login.role_arn else login.profile,
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_SDK_LOAD_CONFIG": "1",
    }


def _source_of_shell(
    config: configparser.RawConfigParser, variables: dict[str, str], shell: Mapping[str, str]
) -> dict[str, str]:
    """Settings that assume the role with the login of the shell: keys, an OIDC token, or the machine."""
    section = f"profile {_SOURCE}"
    if shell.get("AWS_ACCESS_KEY_ID"):
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        config[section] = {name: shell[name.upper()] for name in names if shell.get(name.upper())}
        return {"source_profile": _SOURCE}
    if shell.get("AWS_WEB_IDENTITY_TOKEN_FILE") and shell.get("AWS_ROLE_ARN"):
        names = ("web_identity_token_file", "role_arn", "role_session_name")
        config[section] = {
            name: shell[f"AWS_{name.upper()}"] for name in names if f"AWS_{name.upper()}" in shell
        }
        return {"source_profile": _SOURCE}
    if found := {name: shell[name] for name in _CONTAINER if name in shell}:
        variables |= found
        return {"credential_source": "EcsContainer"}
    return {"credential_source": "Ec2InstanceMetadata"}


def _copy_profile(
    name: str, config: configparser.RawConfigParser, home: Path, shell: Mapping[str, str]
) -> None:
    """Copy a profile with all that it refers to. Raises UserError for one that does not exist."""
    places = {
        "AWS_CONFIG_FILE": Path(shell.get("HOME", ""), ".aws", "config"),
        "AWS_SHARED_CREDENTIALS_FILE": Path(shell.get("HOME", ""), ".aws", "credentials"),
    }
    files = [Path(shell.get(variable, default)).expanduser() for variable, default in places.items()]
    known = [configparser.RawConfigParser(default_section="\0") for _ in files]
    for parser, file in zip(known, files, strict=True):
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, OSError, ValueError) as error:
            reason = type(error).__name__
            raise _problem("credentials.aws", str(file), f"cannot be read: {reason}", "Correct it.") from None
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        sections = ("default",) if name == "default" else (f"profile {name}",)
        values = {
            key: value
            for section in sections
            if section in known[0]
            for key, value in known[0][section].items()
        }
        values |= dict(known[1][name]) if name in known[1] else {}
        if not values:
            rule = f"no such profile in {files[0]} or {files[1]}"
            fix = f"Add it: `aws configure --profile {name}`, or `aws configure sso`."
            raise _problem("credentials.aws.profile", name, rule, fix)
        config["default" if name == "default" else f"profile {name}"] = values
        _copy_session(values, known[0], config, home, Path(shell.get("HOME", "")))
        name = values.get("source_profile", "")


def _copy_session(
    values: Mapping[str, str], known: configparser.RawConfigParser, config: configparser.RawConfigParser,
    home: Path, real: Path,
) -> None:  # fmt: skip
    """Copy the SSO session of a profile, and link its token, which the SDK renews in place."""
    session = values.get("sso_session")
    if session and f"sso-session {session}" in known:
        config[f"sso-session {session}"] = dict(known[f"sso-session {session}"])
    for key, cache, digest in (
        (session or values.get("sso_start_url"), "sso", hashlib.sha1),
        (values.get("login_session"), "login", hashlib.sha256),
    ):
        if key:
            token = f".aws/{cache}/cache/{digest(key.encode()).hexdigest()}.json"
            (home / token).parent.mkdir(parents=True, exist_ok=True)
            (home / token).symlink_to(real / token)


def google(login: GoogleCredentials, home: Path, base: Path, shell: Mapping[str, str]) -> dict[str, str]:
    """Write the Application Default Credentials of a client into a home; returns its variables.

    Raises UserError where there are none, or where they cannot impersonate.
    """
    given = login.credentials_file or shell.get("GOOGLE_APPLICATION_CREDENTIALS")
    default = Path(shell.get("CLOUDSDK_CONFIG") or Path(shell.get("HOME", ""), ".config", "gcloud"))
    source = base / given if given else default / "application_default_credentials.json"
    what = "credentials.google"
    try:
        found: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
        kind = found["type"]
    except (OSError, ValueError, KeyError, TypeError):
        fix = "Run `gcloud auth application-default login`, or name a file of workload identity federation."
        raise _problem(what, str(source), "holds no Google credentials", fix) from None
    if login.service_account:
        url = _IMPERSONATE.format(login.service_account)
        if kind not in _USABLE:
            fix = f"Use one of the kinds {', '.join(_USABLE)}."
            raise _problem(what, str(source), f"cannot impersonate: its type is {kind}", fix)
        if kind == "external_account":
            found["service_account_impersonation_url"] = url
        else:
            found = {
                "type": "impersonated_service_account",
                "service_account_impersonation_url": url,
                "source_credentials": found,
                "delegates": [],
            }
    path = home / "google.json"
    with _private(path) as file:
        json.dump(found, file)
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(path), "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE": str(path)}


def _private(path: Path) -> Any:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8")


def _problem(path: str, value: str, rule: str, fix: str) -> UserError:
    return UserError([Problem(path, value, rule, fix, code="credentials-unusable")])
