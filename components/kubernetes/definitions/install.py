"""The Job that installs a chart's definitions: the release comes after it."""

import dataclasses
import json
from collections.abc import Iterator

import pulumi
from pulumi_kubernetes import batch, core, meta, rbac

from components.base import Child
from components.kubernetes import access
from components.kubernetes.access import bound_role, may
from components.kubernetes.charts import charts
from components.kubernetes.definitions.schemas import ChartSchemas, packed, schemas
from components.kubernetes.programs.program import Program, digest
from components.kubernetes.waiting.job import WaitingProgram, waiting_job

FILE = "definitions.json.xz"
NAME = "definitions"
# Ten thousand Workloads that are written again, one by one.
LIMIT_S = 900
# The largest chart's definitions are 2.5 MB of JSON.
_MEMORY_MIB = 256
_GROUP, _RESOURCE = "apiextensions.k8s.io", "customresourcedefinitions"


def program(chart: str) -> Program:
    """The program that installs a chart's definitions, with their file."""
    data = {FILE: packed(chart)} if schemas()[chart].packed else {}
    return Program("agents.waiting.definitions", ["agents.shared.schemas"], data=data)


def definitions(
    name: str, chart: str, image: pulumi.Input[str], inside: pulumi.ResourceOptions, child: Child
) -> batch.v1.Job:
    """The Job, in the chart's namespace. Another version of the chart is another Job.

    `inside`: options for objects in the namespace, which come after it. `image`: with Python, by digest.
    """
    row, pinned, runs = schemas()[chart], charts()[chart], program(chart)
    lines = json.dumps([dataclasses.asdict(line) for line in row.lines], sort_keys=True)
    arguments = {
        "chart": chart,
        "version": pinned.version,
        "lines": lines,
        "names": json.dumps(row.names),
        "seconds": str(LIMIT_S),
        **({"definitions": FILE} if row.packed else {}),
    }
    waits = WaitingProgram(
        program=runs,
        arguments=arguments,
        name=f"{NAME}-{digest(runs.digest, *arguments.values())}",
        namespace=pinned.namespace,
        account=NAME,
        image=image,
        limit_s=LIMIT_S,
        memory_mib=_MEMORY_MIB,
    )
    return waiting_job(name, waits, [_rights(name, chart, pinned.namespace, inside, child)], child)


def _rights(
    name: str, chart: str, namespace: str, inside: pulumi.ResourceOptions, child: Child
) -> pulumi.Resource:
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=NAME, namespace=namespace),
        automount_service_account_token=False,
        opts=inside,
    )
    subject = access.account(NAME, namespace)
    rules = _rules(schemas()[chart])
    return bound_role(name, f"{NAME}-{chart}", [*rules], subject, child, needs=[account])


def _rules(row: ChartSchemas) -> Iterator[rbac.v1.PolicyRuleArgs]:
    yield may(_GROUP, _RESOURCE, "get", *(["update"] if row.packed else ()), names=row.names)
    if row.packed:
        # No role can name an object that does not exist yet.
        yield may(_GROUP, _RESOURCE, "create")
    if row.migrated:
        yield may(_GROUP, f"{_RESOURCE}/status", "update", names=row.names)
        for kind, _, group in (name.partition(".") for name in row.names):
            yield may(group, kind, "list", "patch")
