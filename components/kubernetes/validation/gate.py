"""The validation that gates a deploy: a queued Job, and a Job that watches it, which `up` waits for."""

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi_kubernetes import batch, core, meta

from components.base import Component, Options
from components.kubernetes.device_claims import claim_template, template_body
from components.kubernetes.offers import claimed
from components.kubernetes.slots import filled, slot
from components.kubernetes.validation import watcher
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.code import shipped
from components.kubernetes.validation.run import (
    CONFIG,
    NAME,
    claim_template_name,
    code_and_plan,
    digest,
    plan_text,
    slot_values,
    smoke_run,
)
from components.kubernetes.validation.watcher import Watched
from components.ordering import after
from infra.launchers import kubernetes
from infra.launchers.validation import RUNS

# Until the queue admits the job: preempted jobs have this long to save their state and stop.
QUEUE_TIMEOUT_S = 1800
# Beyond queue, start and run: for evictions, and for the Job controller to see the end.
MARGIN_S = 120
# Fields that Kueue writes into a Job. All others are immutable once it exists.
MUTATED_BY_KUEUE = ["spec.suspend", "spec.template.spec.nodeSelector"]
# Further ones where the flavor's nodes are requested: the toleration of their taint, and the request.
MUTATED_WITH_NODES = ["spec.template.spec.tolerations", "spec.template.metadata.annotations"]


class SmokeTest(Component):
    """Distributed training on nodes of one pool, as an indexed Job; `up` fails unless it completes in time.

    The Job is named after what it validates, so an unchanged stack is not validated again; a failed Job is
    replaced, and thereby run again, by the next `up`. It has no time to live: a deleted Job would be created
    again. It waits in a queue, so `up` does not wait for it but for a second Job that watches it, which ends
    when the first one does, or when that was not admitted or did not start in time, with the reason.
    """

    job_name: pulumi.Output[str]
    """The Job, `smoke-<digest>`; dependents come after a passed validation."""
    result_path: pulumi.Output[str]
    """Path of the result JSON inside the pods."""
    digest: pulumi.Output[str]
    """Identity of what was validated: plan, image, code and the shape of the pods."""

    def __init__(self, name: str, args: SmokeTestArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        code = shipped()
        run = smoke_run(args, slot(NAME))
        plan = pulumi.Output.all(plan=args["plan"], image=args["image"]).apply(
            lambda known: plan_text(args, code, known)
        )
        self.digest = plan.apply(lambda text: digest(text, run))
        job_name = self.digest.apply(lambda found: f"smoke-{found}")
        values = {**slot_values(args, code), NAME: job_name, CONFIG: job_name}
        service, job = (filled(body, values) for body in kubernetes.job(run))

        metadata = meta.v1.ObjectMetaArgs(name=job_name, namespace=args["namespace"])
        needs: list[pulumi.Resource] = [
            core.v1.Service(
                f"{name}-service", metadata=service["metadata"], spec=service["spec"], opts=self.child()
            ),
            code_and_plan(f"{name}-code", metadata, code, plan, self.child()),
        ]
        fabric = args["node"].get("fabric")
        if fabric and claimed(fabric):
            body = template_body(claim_template_name(args), args["namespace"], fabric)
            needs.append(claim_template(f"{name}-{fabric['kind']}", body, self.child()))
        made = self._job(name, job, needs, args.get("provisioned", False))
        queue_s = args.get("queue_timeout_s", QUEUE_TIMEOUT_S)
        watched = Watched(
            namespace=args["namespace"],
            name=job_name,
            uid=made.metadata.uid,
            pool=args["pool"],
            queue_s=queue_s,
            start_s=run.startup_timeout_s,
            total_s=queue_s + run.deadline_s + MARGIN_S,
        )
        verdict = watcher.watcher(name, watched, args["watch_image"], self.child)

        self.job_name = after(job_name, [made, verdict])
        self.result_path = self.job_name.apply(lambda done: f"{RUNS}/{done}/result.json")
        self.register_declared()

    def _job(self, name: str, body: Any, needs: Sequence[pulumi.Resource], provisioned: bool) -> batch.v1.Job:
        body["metadata"]["annotations"] = {
            # A failed one is run again by the next `up`.
            "pulumi.com/replaceUnready": "true",
            # Its existence is enough. `skipAwait` would also not wait for its deletion before the next one.
            "pulumi.com/waitFor": "jsonpath={.metadata.uid}",
        }
        return batch.v1.Job(
            f"{name}-job",
            metadata=body["metadata"],
            spec=body["spec"],
            opts=self.child(
                pulumi.ResourceOptions(
                    depends_on=needs,
                    ignore_changes=[*MUTATED_BY_KUEUE, *(MUTATED_WITH_NODES if provisioned else ())],
                    # Never two validations of a pool at once: they would compete for the quota of one.
                    delete_before_replace=True,
                )
            ),
        )
