"""Ports on which programs of the user reach the emulated services of a home.

A home keeps its ports: an engine passes its environment to its programs once, maybe before the daemon runs.
Only the standard library, `isolation`, `gcloud` and `kubectl` are imported here.
"""

import hashlib
import json
import os
import socket
from pathlib import Path
from typing import Literal

from rehearsal import gcloud, kubectl
from rehearsal.isolation import OPERATOR_KEY

Cloud = Literal["aws", "gcp"]
# Path at which the user's login gets its tokens.
LOGIN_PATH = "/oauth2/token"
# Address of all MLflow Apps: sagemaker-mlflow 0.5.0, mlflow_sagemaker_helpers.py.
MLFLOW = "SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT"
# The program for gcloud of `infra.jobs.gcp.login_node`.
GCLOUD = "TRAINSTACK_GCLOUD"
# The program for kubectl of `infra.jobs.login_pod`.
KUBECTL = "TRAINSTACK_KUBECTL"
# Services as botocore names them in variables (`AWS_ENDPOINT_URL_<SERVICE>`).
_SERVICES = ("SAGEMAKER", "S3", "CLOUDWATCH_LOGS", "STS", "LAMBDA", "BUDGETS", "SNS", "SSM")
# APIs as gcloud names them in variables (`CLOUDSDK_API_ENDPOINT_OVERRIDES_<API>`).
_APIS = ("AIPLATFORM", "LOGGING", "SECRETMANAGER", "IAMCREDENTIALS", "PUBSUB", "CLOUDSCHEDULER")
# Below the ports that Linux gives to outgoing connections, and below the rendezvous ports of runs.
_FIRST, _COUNT = 10_000, 10_000
FILES: dict[Cloud, str] = {"aws": "doors.port", "gcp": "google-doors.port"}
_LOGIN = "google-login.json"


def port(home: Path, cloud: Cloud = "aws") -> int:
    """The port of a cloud in a home, chosen the first time. The home must exist."""
    kept = home / FILES[cloud]
    if not kept.exists():
        draft = home / f"{kept.name}.{os.getpid()}"
        draft.write_text(str(_free(home, cloud)))
        try:
            os.link(draft, kept)  # another process chose at the same time
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return int(kept.read_text())


def url(home: Path, cloud: Cloud = "aws") -> str:
    """URL of the services of a cloud in a home."""
    return f"http://127.0.0.1:{port(home, cloud)}"


def environment(home: Path) -> dict[str, str]:
    """Environment that leads SDKs to the emulated services, with a login file that they accept."""
    google = url(home, "gcp")
    return {
        **{f"AWS_ENDPOINT_URL_{service}": url(home) for service in _SERVICES},
        MLFLOW: url(home),
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": f"{google}/" for api in _APIS},
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{google}/storage/v1/",  # gcloud needs the whole path
        "STORAGE_EMULATOR_HOST": google,  # read by Google's storage libraries
        "GOOGLE_APPLICATION_CREDENTIALS": str(_login(home)),
        GCLOUD: str(gcloud.program(home, url=google, login=LOGIN_PATH, key=OPERATOR_KEY)),
        KUBECTL: str(kubectl.program(home, url=google, login=LOGIN_PATH, key=OPERATOR_KEY)),
    }


def _login(home: Path) -> Path:
    """The login of the rehearsal's user, in the form of a workforce pool's.

    It holds no key; tokens come from its token URL (external_account_authorized_user.py of google-auth).
    """
    login = {
        "type": "external_account_authorized_user",
        # Not Google's: no library sends this login or its token to Google.
        "universe_domain": "rehearsal.invalid",
        "audience": "//iam.googleapis.com/locations/global/workforcePools/rehearsal/providers/rehearsal",
        "refresh_token": OPERATOR_KEY,
        "token_url": f"{url(home, 'gcp')}{LOGIN_PATH}",
        "token_info_url": f"{url(home, 'gcp')}{LOGIN_PATH}",
        "client_id": OPERATOR_KEY,
        "client_secret": OPERATOR_KEY,
    }
    file, text = home / _LOGIN, json.dumps(login)
    if not file.exists() or file.read_text() != text:
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o600)
        draft.replace(file)
    return file


def _free(home: Path, cloud: Cloud) -> int:
    """A free port; homes and clouds start the search at different ports."""
    digest = hashlib.sha256(cloud.encode() + os.fsencode(home.resolve())).digest()
    start = int.from_bytes(digest[:8], "big")
    for offset in range(_COUNT):
        candidate = _FIRST + (start + offset) % _COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return candidate
    raise OSError(f"no port of 127.0.0.1 from {_FIRST} to {_FIRST + _COUNT - 1} is free")
