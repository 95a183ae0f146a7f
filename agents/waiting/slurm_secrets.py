"""Create the keys of a Slurm system and the password of its database, once; runs in a pod of its own.

They are generated here and are in Secrets that the pods of Slurm mount: not in the state of Pulumi, a file or
a log. Existing ones stay as they are. Exit codes: 0 all exist, 1 one does not; the reason is the container's
termination message. Standard library only.
"""

import argparse
import secrets
import sys
from pathlib import Path

from agents.shared import new_secret
from agents.shared.api_server import ApiServer, Object, finish

# slurm.schedmd.com/authentication.html: slurm.key of 1024 random bytes, jwt.key of HS256 of 32 and more.
_SLURM_KEY_BYTES, _JWT_KEY_BYTES, _PASSWORD_BYTES = 1024, 32, 32


def bodies(namespace: str) -> list[Object]:
    """Secrets with new values, by the names that the components mount."""
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    root = secrets.token_urlsafe(_PASSWORD_BYTES)
    data = {
        "slurm-key": {"slurm.key": secrets.token_bytes(_SLURM_KEY_BYTES)},
        "slurm-jwt": {"jwt.key": secrets.token_bytes(_JWT_KEY_BYTES)},
        "slurm-database": {"password": password.encode(), "root-password": root.encode()},
    }
    return [new_secret.body(name, namespace, values) for name, values in data.items()]


def make(server: ApiServer, namespace: str, limit_s: float) -> tuple[bool, str]:
    """Create those that do not exist; returns whether all exist, and the last state."""
    text = ""
    for one in bodies(namespace):
        made, text = new_secret.create(server, one, limit_s)
        if not made:
            return False, text
    return True, f"keys and password exist; {text}"


def main() -> int:
    """Create the Secrets in the namespace of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--message", type=Path, required=True)
    given = parser.parse_args()
    made, text = make(ApiServer(given.account), given.namespace, given.seconds)
    return finish(text, given.message, passed=made)


if __name__ == "__main__":
    sys.exit(main())
