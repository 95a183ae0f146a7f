"""Plug-in of the mlflow package for MLflow Apps of SageMaker, for images without `sagemaker-mlflow`.

mlflow resolves a tracking URI by its scheme, and the scheme `arn` is known to a plug-in only. The zip of this
package has the entry points (`launchers.bundle.PLUGIN`). An installed `sagemaker-mlflow` comes later on the
path and replaces these. Sources: mlflow 2.22 and 3.17, tracking/registry.py,
tracking/request_auth/registry.py; sagemaker-mlflow 0.5.0, host_creds.py, auth.py.
"""

import importlib
import os
import threading
from collections.abc import Callable
from typing import Any

from smoke_training.record.aws.api import MlflowApp

NAME = "trainstack-mlflow-app"
_APPS: dict[str, MlflowApp] = {}
_LOCK = threading.Lock()


def tracking_store(store_uri: str, artifact_uri: str | None = None) -> Any:  # noqa: ARG001 - the name is mlflow's
    """Return mlflow's client of the tracking API of an app."""
    return importlib.import_module("mlflow.store.tracking.rest_store").RestStore(_host(store_uri))


def registry_store(store_uri: str) -> Any:
    """Return mlflow's client of the model registry of an app."""
    return importlib.import_module("mlflow.store.model_registry.rest_store").RestStore(_host(store_uri))


class AppAuth:
    """Signature of mlflow's requests to the app of the tracking URI."""

    def get_name(self) -> str:
        """See `mlflow.tracking.request_auth.RequestAuthProvider`."""
        return NAME

    def get_auth(self) -> Callable[[Any], Any]:
        """See `mlflow.tracking.request_auth.RequestAuthProvider`: the function that signs a request."""
        return _signed


def _host(arn: str) -> Callable[[], Any]:
    """Return the function by which mlflow finds the address of an app before each request."""
    known = _app(arn)
    made = importlib.import_module("mlflow.utils.rest_utils").MlflowHostCreds
    return lambda: made(known.address, auth=NAME)


def _app(arn: str) -> MlflowApp:
    """Return the app; its credentials are read once per process and renewed when they end."""
    with _LOCK:
        if arn not in _APPS:
            _APPS[arn] = MlflowApp(arn, os.environ)
        return _APPS[arn]


def _signed(request: Any) -> Any:
    app = _app(importlib.import_module("mlflow").get_tracking_uri())
    request.url = request.url.replace("+", "%20")  # signatures of AWS require it
    body = request.body or b""
    content = body.encode() if isinstance(body, str) else body
    kept = {name: value for name, value in request.headers.items() if name.lower() == "content-type"}
    request.headers.update(app.headers(request.method, request.url, content, kept))
    return request
