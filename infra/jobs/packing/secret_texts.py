"""Detects keys, tokens and passwords in the content of files, also in the outputs of notebooks (pure).

Forms, entropies and keywords are those of gitleaks v8 (config/gitleaks.toml); those of Hugging Face are from
trufflehog v3 (pkg/detectors/huggingface), of AWS's secret keys from detect-secrets v1.5
(detect_secrets/plugins/aws.py), of W&B from docs.wandb.ai (keys of 40 and of 86 characters), and of
kubeconfig, netrc and the files of gcloud and Kaggle from their documentation.
"""

import codecs
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# A header, and the first line of the key itself: programs have headers alone.
_PEM = (
    rb"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:\\[nrt]|[\s\"'+,]|[A-Za-z-]{3,20}: [^\n\\]{0,100}){0,30}[A-Za-z0-9+/]{60}"
)


class SecretForm(NamedTuple):
    """A kind of secret, with at least this entropy (bits for a byte), in a file with one of the keywords."""

    kind: str
    keywords: tuple[bytes, ...]
    """Lower case: a fast search for them precedes the slow one."""
    form: re.Pattern[bytes]
    """Its first group is the secret; the whole, without groups."""
    entropy: float = 0


def _form(kind: str, keywords: str, form: bytes, entropy: float = 0) -> SecretForm:
    return SecretForm(kind, tuple(word.encode() for word in keywords.split()), re.compile(form), entropy)


FORMS = (
    _form("private key", "-----begin", _PEM),
    _form("PuTTY private key", "putty-user-key-file-", rb"PuTTY-User-Key-File-\d: \S"),
    _form("AWS access key", "akia asia abia acca", rb"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b", 3),
    _form(
        "AWS secret access key",
        "secret",
        rb"(?i)secret[_ ]?(?:access[_ ]?)?key[\\\"']{0,3}\s{0,5}[=:,]\s{0,5}[\\\"']{0,3}"
        # Names of classes have no digit; 40 hex digits are a key of a web framework, or a commit.
        rb"(?=[a-z/+]*\d)(?![0-9a-f]{40}\b)([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        3.5,
    ),
    _form("Amazon Bedrock key", "absk", rb"\b(ABSK[A-Za-z0-9+/]{109,269}={0,2})", 3),
    _form("Google API key", "aiza", rb"\b(AIza[\w-]{35})(?![\w-])", 4),
    _form("Google OAuth secret", "gocspx-", rb"\b(GOCSPX-[\w-]{28})(?![\w-])", 3),
    _form(
        "Google login",
        "refresh_token",
        rb"refresh_token[\\\"']{0,3}\s{0,5}[=:]\s{0,5}[\\\"']{0,3}(1//[\w-]{30,})",
        3,
    ),
    _form("Google access token", "ya29.", rb"\b(ya29\.[\w-]{30,})", 3),
    _form("Azure storage key", "accountkey=", rb"AccountKey=([A-Za-z0-9+/]{86}==)", 4),
    _form("Hugging Face token", "hf_ api_org_", rb"\b((?:hf_|api_org_)[A-Za-z0-9]{34})(?![A-Za-z0-9])", 3),
    _form("W&B key", "wandb_v1_", rb"\b(wandb_v1_[\w-]{40,})", 3),
    _form(
        "W&B key",
        "wandb",
        rb"(?i)wandb[\w. ]{0,20}(?:key|login)[^\w\n]{1,8}(?:key[^\w\n]{1,5})?([0-9a-f]{40})(?![0-9a-f])",
        3,
    ),
    _form("Kaggle key", "username", rb"\"key\"\s{0,5}:\s{0,5}\"([0-9a-f]{32})\"", 3),
    _form("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rb"\b(gh[pousr]_[0-9A-Za-z]{36})(?![0-9A-Za-z])", 3),
    _form("GitHub token", "github_pat_", rb"\b(github_pat_\w{82})(?!\w)", 3),
    _form("GitLab token", "glpat- gldt- glrt- glcbt-", rb"\b(gl(?:pat|dt|rt|cbt)-[\w.-]{20,300})", 3),
    _form(
        "OpenAI key",
        "t3blbkfj",
        rb"\b(sk-(?:(?:proj|svcacct|admin)-[\w-]{58,74}|[A-Za-z0-9]{20})T3BlbkFJ[\w-]{20,74})",
        3,
    ),
    _form("Anthropic key", "sk-ant-", rb"\b(sk-ant-(?:api|admin)\d\d-[\w-]{93}AA)(?![\w-])", 3),
    _form("Slack token", "xoxb xoxp xoxa xoxr xoxs", rb"\b(xox[abprs]-[0-9A-Za-z-]{20,})", 3),
    _form(
        "Slack webhook",
        "hooks.slack.com",
        rb"hooks\.slack\.com/(?:services|workflows|triggers)/([\w+/]{43,56})",
        3,
    ),
    _form("PyPI token", "pypi-ageichlwas5vcmc", rb"(pypi-AgEIcHlwaS5vcmc[\w-]{50,1000})", 3),
    _form("npm token", "npm_", rb"\b(npm_[A-Za-z0-9]{36})(?![A-Za-z0-9])", 3),
    _form("Databricks token", "dapi", rb"\b(dapi[a-f0-9]{32})(?![a-f0-9])", 3),
    _form("Pulumi token", "pul-", rb"\b(pul-[a-f0-9]{40})(?![a-f0-9])", 2),
    _form(
        "login of a cluster",
        "current-context",
        rb"(?m)^\s*(?:client-key-data|token):\s*[\"']?([\w.+/=-]{32,})",
        3,
    ),
    _form("login of a .netrc", "machine", rb"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S{8,})", 2.8),
    _form(
        "password in a URL",
        "://",
        rb"://[^\s/:@\"'<>]{0,100}:([^\s/:@\"'<>]{8,200})@",
        3,
    ),
)
# Weights and other large files have a keyword by chance, and a form takes seconds for all of them.
_SHORT, _MANY, _AROUND = 1_000_000, 50, 10_000
_PLACEHOLDER = re.compile(rb"(?i)example|passw|x{6}|\*{3}|\.\.\.|^[<$%{]|your[_-]")


def secrets_in(content: bytes) -> Iterator[tuple[int, str]]:
    """The line and kind of each kind of secret in a file, once; texts of Windows in UTF-16 are read, too."""
    text = _plain(content)
    lower = text.lower()
    found: set[str] = set()
    for form in FORMS:
        if form.kind in found:
            continue
        at = next((at for span in _spans(lower, form.keywords) for at in _matches(form, text, *span)), None)
        if at is not None:
            found.add(form.kind)
            yield text.count(b"\n", 0, at) + 1, form.kind


def _matches(form: SecretForm, text: bytes, start: int, end: int) -> Iterator[int]:
    """Positions of secrets of a form in a part of the text."""
    group = form.form.groups
    for match in form.form.finditer(text, start, end):
        value = match[group]
        if _entropy(value) >= form.entropy and not (form.entropy and _PLACEHOLDER.search(value)):
            yield match.start(group)


def _spans(lower: bytes, keywords: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """The parts of a text around its keywords: the whole of a short one, or with many keywords."""
    short = len(lower) <= _SHORT
    for word in keywords:
        position, count = lower.find(word), 0
        while position >= 0:
            if short or count == _MANY:
                yield 0, len(lower)
                return
            yield max(0, position - _AROUND), position + _AROUND
            position, count = lower.find(word, position + 1), count + 1


def _plain(content: bytes) -> bytes:
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
    return content


def _entropy(value: bytes) -> float:
    """Shannon's, in bits for a byte."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
