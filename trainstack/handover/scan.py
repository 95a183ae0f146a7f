"""The last check of a bundle: no secret and no name of another client is in its files (pure)."""

import re
from collections.abc import Iterable, Iterator, Mapping

from infra.errors import Problem

_SECRETS = (
    ("an access key of AWS", rb"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("a secret key of AWS", rb"(?i)aws_secret_access_key[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9/+]{40}\b"),
    ("a private key", rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    ("a key of Google Cloud", rb"\bAIza[0-9A-Za-z_-]{35}\b"),
    ("a token of Google Cloud", rb"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("a token of GitHub", rb"\b(gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{60,})"),
    ("a token of GitLab", rb"\bglpat-[0-9A-Za-z_-]{20,}"),
    ("an access token of Pulumi", rb"\bpul-[0-9a-f]{40}\b"),
    ("a token of Slack", rb"\bxox[abprs]-[0-9A-Za-z-]{10,}"),
    ("a JSON web token", rb"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}"),
    ("a login in an address", rb"\b[a-z][a-z0-9+.-]*://[^\s/:@\"'<>]+:[^\s/@\"'<>]+@"),
    (
        "an encrypted value of Pulumi",
        rb"\b1b47061264138c4ac30d75fd1eb44270\b|\bv1:[A-Za-z0-9+/=]{16}:[A-Za-z0-9+/=]{20,}",
    ),
)
VARIABLES = (
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_ACCESS_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
)
"""Variables of the shell whose values are secrets."""
_SHORTEST = 8
SHORTEST_NAME = 3
"""Shorter names of clients are in every text."""
_DISTINCT = 6
"""Names as long as this are found within words, too."""


def secrets(files: Mapping[str, bytes], shell: Mapping[str, str]) -> Iterator[Problem]:
    """A problem for each place of a secret; the secret itself is not in it."""
    fix = "Remove it at its source, such as a tag, a name or a stack file, and hand over again."
    known = {name: shell[name].encode() for name in VARIABLES if len(shell.get(name, "")) >= _SHORTEST}
    for name, content in sorted(files.items()):
        for what, form in _SECRETS:
            for found in re.finditer(form, content):
                yield Problem(
                    _place(name, content, found.start()), None, f"has {what}", fix, code="handover-secret"
                )
        for variable, value in known.items():
            if (at := content.find(value)) >= 0:
                rule = f"has the value of {variable}"
                yield Problem(_place(name, content, at), None, rule, fix, code="handover-secret")


def names(files: Mapping[str, bytes], others: Iterable[str]) -> Iterator[Problem]:
    """A problem for the first place of each name of another client in each file."""
    fix = "Remove it at its source; a common word is accepted with --accept-name."
    forms = {name: _form(name) for name in others if len(name) >= SHORTEST_NAME}
    for name, content in sorted(files.items()):
        for other, form in sorted(forms.items()):
            found = form.search(content)
            if found or form.search(name.encode()):
                where = _place(name, content, found.start()) if found else name
                yield Problem(where, other, "names another client", fix, code="handover-names-client")


def _form(name: str) -> re.Pattern[bytes]:
    word = re.escape(name.encode())
    whole = word if len(name) >= _DISTINCT else rb"(?<![0-9a-z])" + word + rb"(?![0-9a-z])"
    return re.compile(rb"(?i)" + whole)


def _place(name: str, content: bytes, at: int) -> str:
    line = content.count(b"\n", 0, at) + 1
    return f"{name}:{line}"
