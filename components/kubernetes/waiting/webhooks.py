"""A Job that waits until the webhooks of an object respond: dependents come after it (docs/adr/0012)."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes import batch, core, meta, rbac

from components.kubernetes.programs.program import Program, digest
from components.kubernetes.waiting.job import WaitingProgram, waiting_job

PROGRAM = Program("agents.waiting.dry_run")
_RBAC = "rbac.authorization.k8s.io"
# Endpoints, certificates and the caches of every API server take seconds in a healthy cluster.
LIMIT_S = 300

Child = Callable[..., pulumi.ResourceOptions]


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
    """What identifies a release, which is waited for again: version and values of its chart."""


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
    metadata = meta.v1.ObjectMetaArgs(name=asked.account)
    account = core.v1.ServiceAccount(
        f"{name}-account",
        metadata=meta.v1.ObjectMetaArgs(name=asked.account, namespace=asked.namespace),
        automount_service_account_token=False,
        opts=inside,
    )
    group = asked.body["apiVersion"].partition("/")[0]
    role = rbac.v1.ClusterRole(
        f"{name}-role",
        metadata=metadata,
        rules=[rbac.v1.PolicyRuleArgs(api_groups=[group], resources=[asked.plural], verbs=["create"])],
        opts=child(),
    )
    return rbac.v1.ClusterRoleBinding(
        f"{name}-binding",
        metadata=metadata,
        role_ref=rbac.v1.RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=asked.account),
        subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=asked.account, namespace=asked.namespace)],
        opts=child(pulumi.ResourceOptions(depends_on=[role, account])),
    )
