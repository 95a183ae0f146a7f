"""SageMaker as the service of `trainstack run`."""

from infra.catalog.aws.jobs import warm_quota_name
from infra.catalog.aws.quotas import request
from infra.errors import Problem, UserError
from infra.jobs.aws import plan
from infra.jobs.aws.service import AccessDeniedError, SageMakerService, asked
from infra.jobs.options import RunOrder
from infra.jobs.service import LostError


class SageMakerRuns(SageMakerService):
    """Training jobs of a stack, and their part of a run's plan. See `service_part.RunService`."""

    part = staticmethod(plan.part)

    def kept_warm(self, order: RunOrder) -> str:
        """See `service_part.Keeping`. The quota is 0 by default, and a job above it ends without a warm pool.

        Source: SageMaker developer guide, train-warm-pools-resource-limits.
        """
        machine, minutes = order.machine.machine, order.options.keep_warm_minutes
        name = warm_quota_name(machine)
        pages = self._client("service-quotas").get_paginator("list_service_quotas")
        listed = pages.paginate(ServiceCode="sagemaker", PaginationConfig={"PageSize": 100})
        try:
            with asked("read quotas"):
                rows = (row for page in listed for row in page["Quotas"])
                allowed = next((float(row["Value"]) for row in rows if row["QuotaName"] == name), 0.0)
        except AccessDeniedError:
            return f"{minutes} min, if the quota “{name}” allows it, which the login may not read"
        except LostError as error:
            return f"{minutes} min, if the quota “{name}” allows it; it could not be read: {error}"
        if allowed >= order.nodes:
            return f"{minutes} min"
        rule = f"the account keeps {allowed:g} {machine} after jobs, and the run has {order.nodes}"
        ask = request(name, order.nodes, order.outputs.region)
        fix = f"Leave it out, or request more, which takes hours to days: `{ask}`."
        raise UserError([Problem("--keep-warm", minutes, rule, fix, code="keep-warm-without-quota")])
