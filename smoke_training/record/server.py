"""Reaching the tracking server of an environment, within a bound that no server can stretch."""

import importlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from smoke_training.record.mlflow import Tracking, TrackingError

T = TypeVar("T")

NOT_SET = "MLFLOW_TRACKING_URI is not set"


def within(seconds: float, work: Callable[[], T]) -> T:
    """The result of `work`, or TrackingError after `seconds`.

    A socket timeout bounds one read, not a server that answers byte by byte, nor a name lookup. The thread
    is left behind when its time is up; it ends with the process at the latest.
    """
    results: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="tracking", daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if errors:
        raise errors[0]
    if not results:
        raise TrackingError(f"the tracking server did not answer within {max(0.0, seconds):.0f} s")
    return results[0]


def connect(environment: Mapping[str, str], seconds: float) -> Tracking:
    """The tracking server that the environment names; TrackingError when it names none."""
    uri = environment.get("MLFLOW_TRACKING_URI")
    if not uri:
        raise TrackingError(NOT_SET)
    return Tracking(uri, _credentials(environment), time.monotonic() + seconds)


def _credentials(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """User and password from Secrets Manager, else from the environment, else none."""
    arn = environment.get("MLFLOW_CREDENTIALS_SECRET_ARN")
    if arn:
        return _from_secret(arn, environment.get("AWS_REGION"))
    user, password = environment.get("MLFLOW_TRACKING_USERNAME"), environment.get("MLFLOW_TRACKING_PASSWORD")
    return (user, password) if user and password else None


def _from_secret(arn: str, region: str | None) -> tuple[str, str]:
    """Read the JSON secret {"username", "password"}; every way this can fail becomes a TrackingError."""
    try:
        boto3 = importlib.import_module("boto3")  # only needed here, and not every training image has it
        client = boto3.client("secretsmanager", region_name=region)
        secret = json.loads(client.get_secret_value(SecretId=arn)["SecretString"])
        return str(secret["username"]), str(secret["password"])
    except Exception as error:  # boto3 makes its exception classes at run time
        raise TrackingError(f"credentials {arn}: {type(error).__name__}: {error}") from error
