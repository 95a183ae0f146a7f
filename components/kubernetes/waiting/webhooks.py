"""A Job that waits until the webhooks of an object respond: dependents come after it (docs/adr/0012)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes import batch, core, meta

from components.base import Child
from components.kubernetes import access
from components.kubernetes.access import bound_role, may
from components.kubernetes.programs.program import Program, digest
from components.kubernetes.waiting.job import WaitingProgram, waiting_job

PROGRAM = Program("agents.waiting.dry_run")
# Endpoints, certificates and the caches of every API server take seconds in a healthy cluster.
LIMIT_S = 300


@dataclass(frozen=True)
class DryRun:
    """A dry run: its object, account and namespace."""

    account: str
    """Name of the account, its role, and the Job, which has a digest besides."""
    namespace: str
    """The webhooks' own, which no queue manages, so the pod does not wait."""
    body: Mapping[str, Any]
    """The object."""
    plural: str
    """Its kind, as in paths."""
    image: pulumi.Input[str]
    """Image with Python, by digest, that the platform's own nodes run."""
    release: Sequence[str]
    """Identity of a release; another one is waited for again: version and values of its chart."""


def webhooks_answer(
    name: str, asked: DryRun, release: pulumi.Resource, inside: pulumi.ResourceOptions, child: Child
) -> batch.v1.Job:
    """The Job sends a dry run of the object. Another release, or another object, is another Job.

    `inside`: options for objects in the namespace, which come after it.
    """
    text = json.dumps(asked.body, sort_keys=True)
    path = f"/apis/{asked.body['apiVersion']}/{asked.plural}"
    found = digest(*asked.release, text, PROGRAM.digest)
    waits = WaitingProgram(
        program=PROGRAM,
        arguments={"path": path, "object": text, "seconds": str(LIMIT_S)},
        name=f"{asked.account}-{found}",
        namespace=asked.namespace,
        account=asked.account,
        image=asked.image,
        limit_s=LIMIT_S,
    )
    return waiting_job(name, waits, [release, _rights(name, asked, inside, child)], child)


def _rights(name: str, asked: DryRun, inside: pulumi.ResourceOptions, child: Child) -> pulumi.Resource:
    """An account that may create objects of the kind, which a dry run requires, and nothing else."""
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=asked.account, namespace=asked.namespace),
        automount_service_account_token=False,
        opts=inside,
    )
    group = asked.body["apiVersion"].partition("/")[0]
    rules = [may(group, asked.plural, "create")]
    subject = access.account(asked.account, asked.namespace)
    return bound_role(name, asked.account, rules, subject, child, needs=[account])
