"""SageMaker for boto3: endpoints, and tags of resources that programs of the engine created.

Endpoints are records of the emulated AWS; deleting one here bypasses the engine, as in a real account.
Source: botocore 1.44.5 sagemaker/2017-07-24.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.jobs.aws.sagemaker.paging import matching, page
from rehearsal.jobs.aws.sagemaker.studio import sees

_ENDPOINT = "aws:sagemaker/endpoint:Endpoint"


class EndpointsApi:
    """Lists and deletes records of SageMaker's types."""

    def __init__(self, state: State) -> None:
        self._state = state

    def operations(self) -> Mapping[str, Operation]:
        """See `http.JsonService`."""
        return {
            "ListEndpoints": self._list_endpoints,
            "DeleteEndpoint": self._delete_endpoint,
        }

    def tags(self, request: Request, arn: str) -> dict[str, str]:
        """Tags of the record with this ARN. Raises ServiceError without one."""
        for record in self._state.issued(arn):
            if sees(request, record):
                tags = record.outputs.get("tagsAll") or record.outputs.get("tags") or {}
                return {str(key): str(value) for key, value in tags.items()}
        raise ServiceError("ValidationException", "Requested resource not found.")

    def _list_endpoints(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        self._authorise(request, "*")
        rows = [_endpoint(record) for record in self._all(request, _ENDPOINT)]
        rows = [row for row in rows if body.get("StatusEquals") in (None, row["EndpointStatus"])]
        by = {"CreationTime": "CreationTime", "Name": "EndpointName", "Status": "EndpointStatus"}
        found = page(matching(rows, body, "EndpointName"), body, by)
        return {"Endpoints": found.pop("rows"), **found}

    def _delete_endpoint(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        shapes.check("sagemaker", request.action, body)
        name = str(body["EndpointName"])
        for record in self._all(request, _ENDPOINT):
            if _endpoint(record)["EndpointName"] == name:
                self._authorise(request, str(record.outputs.get("arn")))
                self._state.remove(record)
                return {}
        raise ServiceError("ValidationException", f'Could not find endpoint "{name}".')

    def _all(self, request: Request, token: str) -> list[Record]:
        found = self._state.find(type=token)
        return [record for record in found if sees(request, record)]

    def _authorise(self, request: Request, resource: str) -> None:
        check = AccessCheck(f"sagemaker:{request.action}", resource, context_of(request.region))
        authorise(self._state, request.caller, [check])


def _endpoint(record: Record) -> dict[str, Any]:
    return {
        "EndpointName": str(record.outputs.get("name") or record.id),
        "EndpointArn": str(record.outputs.get("arn")),
        "CreationTime": record.key,
        "LastModifiedTime": record.key,
        "EndpointStatus": "InService",
    }
