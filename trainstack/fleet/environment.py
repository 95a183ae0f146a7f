"""The environment of one stack's command, made from nothing: settings by an allow list, all else its own."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.errors import Problem, UserError
from infra.places import CHECKOUT, STATE_NAME, USER
from trainstack.fleet import credentials, deployers
from trainstack.fleet.stacks import FleetStack

_PASSED = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("OMP_NUM_THREADS", "GOMAXPROCS"),
)
"""Variables of the shell that say something about the machine, and nothing about a client."""
_OWN = ("HOME", "TMPDIR", "PULUMI_", "PYTHON", "LD_", "DYLD_", "AWS_", "GOOGLE_", "CLOUDSDK_", "TRAINSTACK_")


_LOGINS = {"s3://": "aws", "gs://": "google"}
"""Key of `credentials` with which a backend is reached."""


def problems_of(stack: FleetStack, base: Path, *, rehearse: bool) -> Iterator[Problem]:
    """Problems of a client's entry that are known before its first command; `base` has the fleet file."""
    for name in stack.client.variables:
        if name.startswith(_OWN) or name in _PASSED[:1]:
            rule, fix = "is set by the fleet itself", "Use backend and credentials of the client."
            yield Problem(f"{stack.client.name}.variables.{name}", None, rule, fix, code="variable-reserved")
    if not rehearse:
        yield from _unreachable(stack, base)


def _unreachable(stack: FleetStack, base: Path) -> Iterator[Problem]:
    """Problems of a backend that the client's process could not read."""
    where, backend = f"{stack.client.name}.backend", stack.backend
    if backend is None:
        rule, fix = "has no backend", "Add `backend: {url: ...}` to the client or to the fleet."
        yield Problem(where, None, rule, fix, code="backend-missing")
        return
    login = next((key for scheme, key in _LOGINS.items() if backend.url.startswith(scheme)), None)
    if login and getattr(stack.client.credentials, login) is None:
        rule = f"the backend is reached with credentials.{login} of the client, which has none"
        fix = f"Add credentials.{login}, or name a bucket of the client's own cloud."
        yield Problem(f"{where}.url", backend.url, rule, fix, code="backend-without-login")
    if backend.url.startswith("http") and not backend.access_token:
        rule = "the backend is reached with an access token of the client, which has none"
        fix = "Add access_token: {file: FILE} or {command: [PROGRAM, ARGUMENT]}."
        yield Problem(f"{where}.access_token", None, rule, fix, code="backend-without-login")
    for key in ("passphrase", "access_token"):
        source = getattr(backend, key)
        if source and source.file and not (base / source.file).is_file():
            rule = f"the file of the {key} does not exist"
            fix = "Create it, or correct the path; it is relative to the fleet file."
            yield Problem(f"{where}.{key}", str(source.file), rule, fix, code="credentials-unusable")


def prepare(
    stack: FleetStack, folder: Path, base: Path, shell: Mapping[str, str], *, rehearse: bool
) -> dict[str, str]:
    """The variables of a command; its home and temporary files are in `folder`, which must not exist.

    Rehearsals get no credentials. Raises UserError for credentials that cannot be used.
    """
    if problems := list(problems_of(stack, base, rehearse=rehearse)):
        raise UserError(problems)
    home, temporary = folder / "home", folder / "tmp"
    for one in (folder, home, temporary):
        one.mkdir(mode=0o700, parents=one == folder)
    variables = {name: shell[name] for name in _PASSED if name in shell}
    variables |= {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PULUMI_HOME": str(home / ".pulumi"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        **stack.client.variables,
    }
    _share_programs(home, shell)
    if not rehearse:
        variables |= _of_backend(stack, home, base, shell) | _of_clouds(stack, home, base, shell)
    return variables


def _share_programs(home: Path, shell: Mapping[str, str]) -> None:
    """Link the Pulumi CLI and plugins, which are no client's, as they would be downloaded for each."""
    real = Path(shell.get("PULUMI_HOME") or Path(shell.get("HOME", os.devnull), ".pulumi"))
    (home / ".pulumi").mkdir()
    (real / "plugins").mkdir(parents=True, exist_ok=True)  # the engine locks it while it adds one
    (home / ".pulumi" / "plugins").symlink_to(real / "plugins")
    if CHECKOUT is None and USER.is_dir():
        (home / STATE_NAME).symlink_to(USER)


def _of_backend(stack: FleetStack, home: Path, base: Path, shell: Mapping[str, str]) -> dict[str, str]:
    backend = stack.backend
    assert backend
    variables = {"PULUMI_BACKEND_URL": backend.url}
    if backend.organization:
        variables["PULUMI_DEFAULT_ORGANIZATION"] = backend.organization
    if backend.passphrase:
        path = home / "passphrase"
        found = credentials.secret(backend.passphrase, f"{stack.client.name}.backend.passphrase", base, shell)
        path.touch(mode=0o600)
        path.write_text(found, encoding="utf-8")
        variables["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(path)
    if backend.access_token:
        what = f"{stack.client.name}.backend.access_token"
        variables["PULUMI_ACCESS_TOKEN"] = credentials.secret(backend.access_token, what, base, shell)
    return variables


def _of_clouds(stack: FleetStack, home: Path, base: Path, shell: Mapping[str, str]) -> dict[str, str]:
    login = stack.client.credentials
    # Without a login, no SDK may find one elsewhere, such as that of the virtual machine.
    variables = {} if login.aws else {"AWS_EC2_METADATA_DISABLED": "true"}
    variables |= {} if login.google else {"NO_GCE_CHECK": "true", "GCE_METADATA_HOST": "127.0.0.1:9"}
    if login.aws:
        variables |= credentials.aws(deployers.aws(login.aws, stack), home, base, shell)
    if login.google:
        variables |= credentials.google(deployers.google(login.google, stack), home, base, shell)
    variables["CLOUDSDK_CONFIG"] = str(home / "gcloud")
    return variables
