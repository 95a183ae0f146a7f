"""Service Quotas for boto3: the quotas of SageMaker that the scenario of a rehearsal sets, by their names.

Source: botocore 1.44.5 service-quotas/2019-06-24 (ListServiceQuotas: without a value of the account a quota
is left out). Warm pools of machine types without a row are not limited, as other quotas of a rehearsal.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.aws import facts
from rehearsal.core.state import State
from rehearsal.dataplane.aws import shapes
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import JsonService, Operation, Request
from rehearsal.dataplane.aws.iam_policies import AccessCheck

_UNLIMITED = 10_000.0


class ServiceQuotas(JsonService):
    """Lists quotas in one page."""

    target = "ServiceQuotasV20190624"

    def __init__(self, state: State, limits: Callable[[], Mapping[str, float]]) -> None:
        self._state, self._limits = state, limits

    def operations(self) -> Mapping[str, Operation]:
        """See `JsonService`."""
        return {"ListServiceQuotas": self._list}

    def _list(self, request: Request, body: dict[str, Any]) -> Mapping[str, Any]:
        shapes.check("service-quotas", request.action, body)
        check = AccessCheck("servicequotas:ListServiceQuotas", "*", context_of(request.region))
        authorise(self._state, request.caller, [check])
        types = (f"ml.{name}" for name in (*facts.catalog().instance_types, *facts.catalog().cpu_types))
        found = {f"{name} for training warm pool usage": _UNLIMITED for name in types}
        found |= {_name(key): value for key, value in self._limits().items()}
        service = str(body["ServiceCode"])
        rows = [{"ServiceCode": service, "QuotaName": name, "Value": value} for name, value in found.items()]
        return {"Quotas": rows if service == "sagemaker" else []}


def _name(key: str) -> str:
    row = facts.catalog().quotas.get(key)
    return row.description if row else key
