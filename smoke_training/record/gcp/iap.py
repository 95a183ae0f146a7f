"""Plug-in of the mlflow package for Identity-Aware Proxy.

mlflow finds it in the zip of this package on the path of a job (`launchers.bundle.PLUGIN`), where
MLFLOW_TRACKING_AUTH names it; tokens are renewed. Source: mlflow 3.17, tracking/request_auth.
"""

import os
from collections.abc import Callable
from typing import Any

from smoke_training.names import IAP
from smoke_training.record.gcp.api import IapLogin


class IapAuth:
    """Authentication of mlflow's requests; requests to any other address are unchanged."""

    def __init__(self) -> None:
        self._address = f"{os.environ.get('MLFLOW_TRACKING_URI', '').rstrip('/')}/"
        self._login = IapLogin(self._address)

    def get_name(self) -> str:
        """See `mlflow.tracking.request_auth.RequestAuthProvider`."""
        return IAP

    def get_auth(self) -> Callable[[Any], Any]:
        """See `mlflow.tracking.request_auth.RequestAuthProvider`: the function that signs a request."""
        return self._signed

    def _signed(self, request: Any) -> Any:
        if self._address != "/" and request.url.startswith(self._address):
            request.headers.update(self._login.header())
        return request
