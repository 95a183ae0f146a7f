"""Detects files that look like secrets, which a run must not include (pure)."""

import re
from fnmatch import fnmatchcase

# File names of keys, passwords and logins.
_NAMES = (
    *(".env", ".env.*", "*.env"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *("credentials", "credentials.*", "*credentials.json", "secrets.*", "client_secret*.json"),
    *("*service[-_]account*.json", "application_default_credentials.json", "kaggle.json", "kubeconfig*"),
    *(".netrc", "_netrc", ".pypirc", ".git-credentials", ".pgpass", ".htpasswd", ".dockerconfigjson"),
)
_FOLDERS = frozenset({".aws", ".ssh", ".kube", ".gnupg", ".azure", ".gcloud", ".docker"})
# Names of files without secrets: examples, and modules that read secrets.
_HARMLESS = ("*.example", "*.sample", "*.template", "*.py", "*.pub", "*.md")
_PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")
_HEAD = 4096


def named_like_a_secret(path: str) -> bool:
    """Return whether the name of a file, or of a folder above it, is typical of a secret."""
    *folders, name = path.lower().split("/")
    if _FOLDERS & set(folders):
        return True
    return any(fnmatchcase(name, form) for form in _NAMES) and not any(
        fnmatchcase(name, form) for form in _HARMLESS
    )


def holds_a_key(content: bytes) -> bool:
    """Return whether a file begins with a private key (RFC 7468)."""
    return _PRIVATE_KEY.search(content[:_HEAD]) is not None
