"""Invalid specs are refused, with code and path."""

import copy
import json

import pytest

from infra import stackspec
from infra.stackspec import StackSpec
from infra.stackspec.model import FORMS
from smoke_training import plan
from tests.infra.stackspec.broken_specs import BROKEN
from tests.infra.stackspec.stack_files import Values, problems
from tests.smoke_training.samples import document


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_deployed_is_refused_by_name(values: Values, case: str) -> None:
    stackspec.load("dev", copy.deepcopy(values), "f")  # it is this change, and nothing else, that breaks it
    steps, value, path, code = BROKEN[case]
    place = values["spec"]
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    assert (code, path) in [(one.code, one.path) for one in problems(values)]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"burn": "15m", "timeout_s": 1140}, None),
        ({"burn": "15m", "timeout_s": 1139}, "burn-outlives-gate"),
        ({"burn": "7h", "timeout_s": 6 * 3600}, "burn-outlives-gate"),
    ],
)
def test_a_burn_fits_into_the_time_limit_of_the_gate(
    values: Values, changes: Values, code: str | None
) -> None:
    values["spec"]["smoke"] |= {"depth": "burn", **changes}
    if code is None:
        spec = stackspec.load("dev", copy.deepcopy(values), "f").spec
        assert spec.smoke.burn_s == 900
        limited = {**document(depth="burn", burn_s=900.0), "timeout_s": float(spec.smoke.timeout_s)}
        plan.parse(json.dumps(limited))
    else:
        (problem,) = problems(values)
        assert (problem.code, problem.path) == (code, "smoke.burn")


def test_alerts_of_a_team_need_monitoring(values: Values) -> None:
    values["spec"]["teams"][0]["alert_emails"] = ["vision@example.com"]
    stackspec.load("dev", copy.deepcopy(values), "f")
    values["spec"]["layout"] |= {"monitoring": {"kind": "none"}, "idle_gpus": None}
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("alerts-not-monitored", "teams[0].alert_emails")


@pytest.mark.parametrize("cloud", ["values", "gcp"])
def test_prometheus_has_the_memory_that_all_nodes_need(request: pytest.FixtureRequest, cloud: str) -> None:
    values: Values = request.getfixturevalue(cloud)
    small, node = "prometheus-memory-too-small", "system-node-too-small"
    own = {"kind": "in_cluster", "retention_days": 30, "storage_gib": 50}
    layout = values["spec"]["layout"] | {"monitoring": {**own, "memory_gib": 2}}
    values["spec"]["layout"] = layout
    stackspec.load("dev", copy.deepcopy(values), "f")
    # More nodes than a pool may have: another rule refuses each of these specs too.
    layout["pools"][0]["max_nodes"] = 4000

    def found() -> list[tuple[str, str, object]]:
        return [(one.code, one.path, one.value) for one in problems(values) if one.code in (small, node)]

    assert found() == [(small, "layout.monitoring.memory_gib", 2)]
    # An operator may set less than the estimate; without a limit, that needs a larger system machine.
    layout["monitoring"] = own
    ((code, path, _),) = found()
    assert (code, path) == (node, "layout.system_pool.machine")
    layout["pools"][0]["max_nodes"] = 500
    layout["monitoring"] = {**own, "memory_gib": 10}
    assert found() == []
    # Nothing is concluded from a machine that the catalog does not have, or without monitoring.
    layout["monitoring"] = {**own, "memory_gib": 2}
    assert found()
    layout["pools"][0]["machine"] = "x9.unknown"
    assert found() == []
    layout |= {"monitoring": {"kind": "none"}, "idle_gpus": None}
    assert found() == []


def test_idle_gpus_need_monitoring(values: Values) -> None:
    values["spec"]["layout"] |= {
        "monitoring": {"kind": "none"},
        "idle_gpus": {"minutes": 30, "grace_minutes": 10, "jobs": "stop"},
    }
    (problem,) = problems(values)
    assert (problem.code, problem.against) == ("idle-gpus-not-monitored", "layout.monitoring.kind")
    assert problem.value == {"minutes": 30, "grace_minutes": 10, "jobs": "stop"}
    values["spec"]["layout"]["idle_gpus"] = None
    stackspec.load("dev", values, "f")


def test_teams_that_become_one_namespace_are_refused(values: Values) -> None:
    team = values["spec"]["teams"][0]
    values["spec"]["teams"] = [
        {**team, "name": "Vision Lab", "gpus": {}},
        {**team, "name": "vision_lab", "gpus": {}},
    ]
    (problem,) = problems(values)
    assert (problem.code, problem.path) == ("name-taken", "teams[1].name")


def test_every_string_format_has_a_description() -> None:
    """A format without one would end in a traceback for a wrong value."""

    def patterns(schema: object) -> set[str]:
        if isinstance(schema, dict):
            here = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
            return here.union(*map(patterns, schema.values()))
        return set().union(*map(patterns, schema)) if isinstance(schema, list) else set()

    found = patterns(StackSpec.model_json_schema())
    assert found and found <= FORMS.keys()
