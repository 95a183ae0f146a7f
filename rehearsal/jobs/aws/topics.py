"""SNS for boto3: Publish. Messages are appended to a file per topic and are not delivered.

Source: botocore 1.44.5 sns/2010-03-31 (query protocol, Publish, its limits). Rights to a topic's key are not
checked: its policy may grant them, and the key of AWS requires none.
"""

import json
import time
import uuid
from pathlib import Path
from urllib.parse import parse_qs

from rehearsal.core.state import State
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import XML, Request, Response, ServiceError, query_refusal
from rehearsal.dataplane.aws.iam_policies import AccessCheck

_TOPIC = "aws:sns/topic:Topic"
_NAMESPACE = "http://sns.amazonaws.com/doc/2010-03-31/"
_MESSAGE_BYTES = 256 * 1024


class Topics:
    """Accepts messages for existing topics."""

    def __init__(self, state: State, home: Path) -> None:
        self._state, self._folder = state, home / "messages"

    def answer(self, request: Request) -> Response:
        """See `http.Service`."""
        form = {name: values[0] for name, values in parse_qs(request.body.read().decode()).items()}
        if form.get("Action") != "Publish":
            raise ServiceError("InvalidAction", f"{form.get('Action')} is not emulated")
        arn, message = form.get("TopicArn", ""), form.get("Message", "")
        check = AccessCheck("sns:Publish", arn, context_of(request.region))
        authorise(self._state, request.caller, [check], "AuthorizationError")
        if not any(one.outputs.get("arn") == arn for one in self._state.find(type=_TOPIC)):
            raise ServiceError("NotFound", "Topic does not exist", 404)
        if not message or len(message.encode()) > _MESSAGE_BYTES:
            raise ServiceError("InvalidParameter", "Invalid parameter: Message too long or empty")
        self._keep(arn, {"subject": form.get("Subject", ""), "message": message, "time": time.time()})
        result = f"<PublishResult><MessageId>{uuid.uuid4()}</MessageId></PublishResult>"
        text = f'<PublishResponse xmlns="{_NAMESPACE}">{result}</PublishResponse>'
        return Response(200, text.encode(), XML)

    def refusal(self, error: ServiceError) -> Response:
        """See `http.Service`."""
        return query_refusal(error, _NAMESPACE)

    def _keep(self, arn: str, message: dict[str, object]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{arn.rpartition(':')[2]}.jsonl").open("a") as file:
            file.write(json.dumps(message) + "\n")
