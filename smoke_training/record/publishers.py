"""Publish to topics of clouds: each function publishes one message, or raises.

Times are in seconds, for everything together.
"""

import base64
import json
import os

from smoke_training.record import amazon, google


def sns(topic: str, subject: str, text: str, seconds: float) -> None:
    """Publish to an SNS topic, by its ARN. Raises boto3's exceptions, ImportError where an image lacks it."""
    client = amazon.client("sns", seconds, region=topic.split(":")[3])
    client.publish(TopicArn=topic, Subject=subject, Message=text)


def pubsub(topic: str, subject: str, text: str, seconds: float) -> None:
    """Publish to a Pub/Sub topic, by its resource name, with the permissions of the node's service account.

    The variable CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB overrides the address, as in Google's own tools.
    Raises OSError, and ValueError or KeyError for a malformed response.
    """
    api = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB") or "https://pubsub.googleapis.com/"
    patience = seconds / (google.ATTEMPTS * 2)
    message = {"data": base64.b64encode(text.encode()).decode(), "attributes": {"subject": subject}}
    body = json.dumps({"messages": [message]}).encode()
    headers = {**google.authorization(patience), "Content-Type": "application/json"}
    google.asked(f"{api.rstrip('/')}/v1/{topic}:publish", headers, body, patience)
