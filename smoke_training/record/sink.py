"""The MLflow record of a finished run. An outage never changes the verdict; the result says it."""

import importlib
import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.record import fields
from smoke_training.record.mlflow import Tracking, TrackingError

PATIENCE_S = 60.0  # for the whole record; a tracking server may be slow but must not hold up a deploy


def record(
    result: Mapping[str, Any], found: Evidence, environment: Mapping[str, str], deadline: float
) -> dict[str, object]:
    """Log one run; returns the result's `mlflow` part: synced or not, the run id, and the reason if not."""
    uri = environment.get("MLFLOW_TRACKING_URI")
    if not uri:
        return {"synced": False, "run_id": None, "reason": "MLFLOW_TRACKING_URI is not set"}
    until = min(time.monotonic() + PATIENCE_S, deadline)
    run = None
    try:
        tracking = Tracking(uri, _credentials(environment), until)
        experiment = tracking.experiment(fields.EXPERIMENT)
        started = datetime.fromisoformat(str(result["started"])).timestamp()
        run, artifacts = tracking.create_run(
            experiment, fields.run_name(result), int(started * 1000), fields.tags(result)
        )
        now = int(time.time() * 1000)
        tracking.log(run, fields.metrics(result, found, now), fields.params(result, found))
        # The status before the artifact: a run that is cut off here must not look as if it still ran.
        tracking.finish(run, fields.run_status(result), int((started + float(result["duration_s"])) * 1000))
        content = {**result, "mlflow": {"synced": True, "run_id": run, "reason": None}}
        tracking.upload(artifacts, "result.json", json.dumps(content, indent=1).encode())
    except TrackingError as error:
        return {"synced": False, "run_id": run, "reason": str(error)[:500]}
    return {"synced": True, "run_id": run, "reason": None}


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
