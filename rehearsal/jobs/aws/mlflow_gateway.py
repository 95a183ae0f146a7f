"""The address of all MLflow Apps of a region, which shares its port with SageMaker's API here.

Programs find it by a variable of `sagemaker-mlflow` (`service_ports.MLFLOW`). A header names the app; the
request must be signed for `sagemaker` by a role that may call it. *The statuses and the text of refusals are
not documented.*
"""

import contextlib
import http.client

from rehearsal.core.state import State
from rehearsal.dataplane.aws import signatures
from rehearsal.dataplane.aws.authorization import context_of, refused
from rehearsal.dataplane.aws.http import Request, Response, Service, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.dataplane.aws.identity import Identities
from rehearsal.jobs.aws.mlflow_apps import MlflowApps
from rehearsal.jobs.server_process import ServerStartError

_APP = "x-sm-mlflow-app-arn"
_CALL = "sagemaker:CallMlflowAppApi"
_TIMEOUT_S = 60.0


class MlflowGateway:
    """Requests for apps; all others go to `api`."""

    def __init__(self, state: State, apps: MlflowApps, api: Service, identities: Identities) -> None:
        self._state, self._apps, self._api, self._identities = state, apps, api, identities

    def answer(self, request: Request) -> Response:
        """See `Service`."""
        arn = request.headers.get(_APP)
        if arn is None:
            return self._api.answer(request)
        content = request.body.read()
        signatures.check(request, content, self._identities.secret(signatures.access_key(request)))
        check = AccessCheck(_CALL, arn, context_of(request.region))
        if refused(self._state, request.caller, [check]) is not None:
            text = f"User: {request.caller.arn} is not authorized to perform: {_CALL} on resource: {arn}"
            raise ServiceError("AccessDeniedException", text, 403)
        return self._forwarded(request, arn, content)

    def refusal(self, error: ServiceError) -> Response:
        """See `Service`."""
        return self._api.refusal(error)

    def _forwarded(self, request: Request, arn: str, content: bytes) -> Response:
        sent = {name: value for name in ("content-type", "accept") if (value := request.headers.get(name))}
        target = f"{request.path}?{request.query_text}" if request.query_text else request.path
        try:
            connection = self._apps.connection(arn, _TIMEOUT_S)
            if connection is None:
                raise ServiceError("ResourceNotFound", f"MLflow App {arn} does not exist", 404)
            with contextlib.closing(connection):
                connection.request(request.method, target, content, sent)
                answer = connection.getresponse()
                kind = answer.getheader("Content-Type") or "application/json"
                return Response(answer.status, answer.read(), {"Content-Type": kind})
        except (OSError, http.client.HTTPException, ServerStartError) as error:
            raise ServiceError("InternalServerException", f"the app does not respond: {error}", 503) from None
