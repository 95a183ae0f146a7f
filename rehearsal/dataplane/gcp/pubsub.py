"""Pub/Sub: publish. Source: the discovery document of pubsub v1."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rehearsal.core.state import State
from rehearsal.dataplane.gcp.http import Answer, ApiCall, Method, ServiceError
from rehearsal.dataplane.gcp.iam_bindings import allowed

# Document space: published messages by topic.
MESSAGES = "pubsub-message"
_TOPIC = "gcp:pubsub/topic:Topic"
Wake = Callable[[str, Sequence[Mapping[str, Any]]], None]


class PubSub:
    """See `http.Api`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.wakes: Wake = lambda _, __: None
        """Subscribers by topic."""

    def methods(self) -> Sequence[Method]:
        """See `http.Api`."""
        path = r"v1/(?P<topic>projects/[^/]+/topics/[^/:]+):publish"
        return (Method("POST", path, self._publish),)

    def _publish(self, call: ApiCall) -> Answer:
        name = call.parts["topic"]
        topic = next((one for one in self._state.find(type=_TOPIC) if one.id == name), None)
        if topic is None:
            raise ServiceError(404, f"Resource not found (resource={name.rpartition('/')[2]}).")
        if not allowed(self._state, call.caller.members, "pubsub.topics.publish", topic, name):
            raise ServiceError(403, "User not authorized to perform this action.")
        messages = call.body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise ServiceError(400, "The value for message_count is too small. You passed 0 in the request.")
        with self._state.transaction():
            kept = [*(self._state.document(MESSAGES, topic.id) or []), *messages]
            self._state.put_document(MESSAGES, topic.id, kept)
        first = len(kept) - len(messages) + 1
        ids = [str(first + index) for index in range(len(messages))]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        pairs = zip(messages, ids, strict=True)
        self.wakes(topic.id, [{**one, "messageId": number, "publishTime": now} for one, number in pairs])
        return {"messageIds": ids}
