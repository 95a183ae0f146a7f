"""Detects files whose names are typical of secrets, which a run must not include (pure)."""

from fnmatch import fnmatchcase

# File names of keys, passwords and logins.
_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *(
        "credentials",
        "credentials.*",
        "*credentials.json",
        "*credentials.csv",
        "secrets.*",
        "client_secret*.json",
    ),
    # The console of AWS names them `<user>_accessKeys.csv`.
    *("*accesskeys.csv", "rootkey.csv", ".s3cfg", ".boto", "rclone.conf"),
    *("*service[-_]account*.json", "application_default_credentials.json", "kaggle.json", "kubeconfig*"),
    *(
        ".netrc",
        "_netrc",
        ".pypirc",
        ".git-credentials",
        ".pgpass",
        ".htpasswd",
        ".dockercfg",
        ".dockerconfigjson",
    ),
)
_FOLDERS = frozenset(
    {".aws", ".ssh", ".kube", ".gnupg", ".azure", ".gcloud", ".docker", ".huggingface", ".kaggle"}
)
# Names of files without secrets: examples, and modules that read secrets.
_HARMLESS = ("*.example", "*.sample", "*.template", "*.py", "*.pub", "*.md")


def named_like_a_secret(path: str) -> bool:
    """Return whether the name of a file, or of a folder above it, is typical of a secret."""
    *folders, name = path.lower().split("/")
    if _FOLDERS & set(folders):
        return True
    return any(fnmatchcase(name, form) for form in _NAMES) and not any(
        fnmatchcase(name, form) for form in _HARMLESS
    )
