"""Limits of a Google Cloud project: APIs, policies, quotas, capacity, concurrent operations.

All but the last come from a scenario (`faults.json`); without one, every API is enabled, nothing is
forbidden, and capacity is unlimited.
"""

import importlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from rehearsal.core.faults import Faults, read
from rehearsal.core.model import Call, EmulatedCloud, InitFailedError, Properties, Record, RefusalError
from rehearsal.core.properties import at
from rehearsal.core.state import State
from rehearsal.core.wrapper import Wrapper
from rehearsal.gcp import apis, organization_policies
from rehearsal.gcp.facts import region_of
from rehearsal.gcp.quota_usage import NETWORK, demands
from rehearsal.gcp.site import places_of, project_of
from rehearsal.gcp.sizes import CLUSTER, POOL, market, nodes

if TYPE_CHECKING:
    from infra.catalog.demand import Demand
    from infra.catalog.gcp.quotas import Shortfall

_BUDGET = "gcp:billing/budget:Budget"
_SERVICE = "gcp:projects/service:Service"
# "Too many operations: cluster ... hits the concurrent operations quota 5"; the provider retries since
# GoogleCloudPlatform/magic-modules pull request 8828, so that pools of one cluster wait for each other.
_AT_ONCE = 5
_MANAGE = "https://console.cloud.google.com/iam-admin/quotas?usage=USED&project="


class Limited(Wrapper):
    """Refuses what exceeds the project's limits, with the services' errors."""

    def __init__(self, inside: EmulatedCloud, state: State, faults: Path) -> None:
        super().__init__(inside)
        self._state, self._faults = state, faults

    def create(self, call: Call, inputs: Properties, *, preview: bool) -> tuple[str, Properties]:
        """See `model.EmulatedCloud`; without capacity, a pool without nodes remains."""
        if preview:
            return self.inside.create(call, inputs, preview=True)
        scenario = read(self._faults)
        config = call.instance.config
        project = project_of(config, inputs)
        location = str(places_of(config, inputs).get("location") or "")
        self._refuse(call, inputs, project, location, scenario)
        with _turn(call, inputs):
            identifier, outputs = self.inside.create(call, inputs, preview=False)
        if call.type == POOL:
            self._await_machines(scenario, identifier, inputs, outputs, project)
        return identifier, outputs

    def update(
        self, call: Call, id: str, old_outputs: Properties, inputs: Properties, *, preview: bool
    ) -> Properties:
        """See `model.EmulatedCloud`."""
        with _turn(call, inputs if not preview else {}):
            return self.inside.update(call, id, old_outputs, inputs, preview=preview)

    def delete(self, call: Call, id: str, outputs: Properties) -> None:
        """See `model.EmulatedCloud`."""
        with _turn(call, outputs):
            self.inside.delete(call, id, outputs)

    def _refuse(self, call: Call, inputs: Properties, project: str, location: str, scenario: Faults) -> None:
        api = apis.needed(call.type)
        enabled = api and api[0] in self._enabled(scenario, project, api[0])
        if api and (not enabled or api[0] in scenario.unusable_apis):
            raise apis.disabled(*api, project)
        if call.type == _BUDGET:
            _refuse_currency(inputs, scenario.billing_currency)
        if scenario.org_policies:
            organization_policies.refuse(scenario, call.type, inputs, project, self._cluster_of(inputs))
        if scenario.quotas and call.type in (CLUSTER, POOL, NETWORK):
            self._refuse_quota(call, inputs, project, location, scenario.quotas)

    def _enabled(self, scenario: Faults, project: str, api: str) -> set[str]:
        """The enabled APIs of a project, as far as one resource needs them."""
        if scenario.apis is None:
            return {api}
        made = {
            str(one.outputs.get("service"))
            for one in self._state.find(type=_SERVICE)
            if str(one.outputs.get("project") or one.scope) == project
        }
        return made | set(scenario.apis)

    def _cluster_of(self, inputs: Properties) -> Properties:
        wanted = inputs.get("cluster")
        found = (one for one in self._state.find(type=CLUSTER) if wanted in (one.id, one.name))
        return next((one.inputs for one in found), {})

    def _refuse_quota(
        self, call: Call, inputs: Properties, project: str, location: str, allowed: Mapping[str, float]
    ) -> None:
        region = region_of(location)
        mine = list(demands(call.type, call.name, inputs, location))
        rest: list[Demand] = []
        for record in self._users(project):
            same = region_of(str(record.outputs.get("location"))) == region
            taken = demands(record.type, record.name, record.inputs, str(record.outputs.get("location")))
            rest += [one for one in taken if same or _of_project(one)]
        keys = {one.key for one in mine}
        for short in _quotas().exceeded([*rest, *mine], allowed):
            if short.quota.key in keys:
                before = sum(one.amount for one in rest if one.key == short.quota.key)
                raise _exceeded(short, before, project)

    def _users(self, project: str) -> Iterator[Record]:
        """Networks and pools; a cluster's first nodes count only where their pool is kept."""
        for token in (CLUSTER, POOL, NETWORK):
            for record in self._state.find(type=token, scope=project):
                if token != CLUSTER or not record.inputs.get("removeDefaultNodePool"):
                    yield record

    def _await_machines(
        self, scenario: Faults, id: str, inputs: Properties, outputs: Properties, project: str
    ) -> None:
        """Raise InitFailedError, as the provider does after its timeout, for machines without capacity.

        Source: terraform-provider-google, resource_container_node_pool.go: the pool is there, in the state.
        """
        machine = str((inputs.get("nodeConfig") or {}).get("machineType") or "")
        zones = [str(zone) for zone in outputs.get("nodeLocations") or ()]
        count = nodes(POOL, {**inputs, "nodeLocations": zones}, str(outputs.get("location")))
        for zone in zones:
            each = -(-count // len(zones))
            left = scenario.machines_left(machine, zone, market(inputs))
            if left < each:
                group = next(
                    (str(one) for one in outputs.get("instanceGroupUrls") or () if zone in str(one)), ""
                )
                message = (
                    "Error waiting for creating GKE NodePool: Not all instances running in IGM after 35m. "
                    f"Expected {each}, running {left}, transitioning {each - left}. Current errors: "
                    f"[GCE_STOCKOUT]: Instance '{group.rpartition('/')[2].removesuffix('-grp')}' creation "
                    f"failed: The zone 'projects/{project}/zones/{zone}' does not have enough resources "
                    "available to fulfill the request.  '(resource type:compute)'."
                )
                raise InitFailedError(id, outputs, [message])


def _refuse_currency(inputs: Properties, currency: str) -> None:
    """Raise RefusalError for a budget in another currency than the billing account's.

    Source: billingbudgets v1, BudgetAmount.specifiedAmount; the text: hashicorp/terraform-provider-google
    issue 11615.
    """
    named = at(inputs, "amount.specifiedAmount.currencyCode")
    if named not in (None, currency):
        text = (
            "Error 400: Request contains an invalid argument. (property amount.specifiedAmount.currencyCode)"
        )
        raise RefusalError("badRequest", text, f"Name {currency}, the currency of the billing account.")


_busy: Counter[str] = Counter()
_free = threading.Condition()


@contextmanager
def _turn(call: Call, properties: Properties) -> Iterator[None]:
    """Run one operation on a cluster's pools; a sixth waits and logs, as in the provider."""
    name = str(properties.get("cluster") or "").rpartition("/")[2]
    if call.type != POOL or not name:
        yield
        return
    with _free:
        if _busy[name] >= _AT_ONCE:
            call.log(
                "warning",
                f'Error 429: Too many operations: cluster "{name}" hits the concurrent operations quota '
                f"{_AT_ONCE}, please try again later: {call.name} waits for another pool. Pools that depend "
                "on each other do not.",
            )
        while _busy[name] >= _AT_ONCE:
            if call.cancelled.is_set():
                raise RefusalError("RequestCanceled", f"{call.name}: cancelled while it waited")
            _free.wait(0.2)
        _busy[name] += 1
    try:
        yield
    finally:
        with _free:
            _busy[name] -= 1
            _free.notify_all()


def _exceeded(short: "Shortfall", taken: float, project: str) -> RefusalError:
    """Error of an exceeded quota: GKE checks before it starts machines, Compute Engine for all regions."""
    quota = short.quota
    metric = quota.quota_id.partition("-per-")[0].replace("-", "_")
    fix = f"Ask for a higher quota ({quota.quota_id}), or for less: {short}."
    if quota.quota_id.endswith("-per-project"):
        message = f"Error 403: Quota '{metric}' exceeded. Limit: {short.limit:.1f} globally."
        return RefusalError("quotaExceeded", message, fix)
    if quota.gpu_family:
        metric = f"{metric}' for gpu_family '{quota.gpu_family}"
        message = f"Error 403: Quota '{metric}' exceeded. Limit: {short.limit:.1f} in region."
        return RefusalError("quotaExceeded", message, fix)
    left = max(0.0, short.limit - taken)
    wanted = short.wanted - taken
    return RefusalError(
        "quotaExceeded",
        f'Error 403: Insufficient regional quota to satisfy request: resource "{metric}": request requires '
        f"'{wanted:.1f}' and is short '{wanted - left:.1f}'. project has a quota of '{short.limit:.1f}' with "
        f"'{left:.1f}' available. View and manage quotas at {_MANAGE}{project}.",
        fix,
    )


def _of_project(demand: "Demand") -> bool:
    """Return whether a quota applies to all regions."""
    return str(_quotas().facts.quotas[demand.key].quota_id).endswith("-per-project")


def _quotas() -> ModuleType:
    """The catalog's quotas, imported on first use so that the daemon starts faster."""
    return importlib.import_module("infra.catalog.gcp.quotas")
