"""The policy that refuses a JobSet or a TrainJob whose Jobs would exceed the quota of its namespace.

Kueue admits both without their Jobs. The controller of JobSet creates the Jobs at once, suspended (JobSet
v0.12.0 pkg/controllers/jobset_controller.go, `constructJob`). Where the quota refuses them, the JobSet would
hold its GPUs without a pod, as would the TrainJob without its JobSet. A quota that counts the two kinds would
not prevent it, and refuses them all until its controller has found their definitions.
"""

from components.kubernetes.queueing.policy import Policy, rule

ROOM, QUOTA = "trainstack-room", "objects"
JOBS = "count/jobs.batch"
# The defaults of `managedBy`.
_JOBSET, _TRAINER = "jobset.sigs.k8s.io/jobset-controller", "trainer.kubeflow.org/trainjob-controller"
ELSEWHERE = "kueue.x-k8s.io/multikueue"
"""`managedBy` of a job that another cluster runs."""
# Most Jobs of a runtime of Trainer v2.3.0: the initializers of data set and model, and the nodes.
_OF_TRAINER = 3


def _amount(part: str) -> str:
    """CEL: a number of the quota's status."""
    return f"quantity(string(params.status.{part}['{JOBS}'])).asInteger()"


def policy(*, sends: bool = False) -> Policy:
    """Every JobSet has a Job that is counted, so that the limit of Jobs is one of JobSets, too.

    `sends`: jobs run on other clusters, where they are counted.
    """
    makers = [_JOBSET, _TRAINER, *([ELSEWHERE] if sends else [])]
    of_set = "object.spec.?replicatedJobs.orValue([]).map(job, int(job.?replicas.orValue(1))).sum()"
    return Policy(
        ROOM,
        [rule("jobset.x-k8s.io", "jobsets"), rule("trainer.kubeflow.org", "trainjobs")],
        [
            (
                f"variables.jobs > 0 && object.spec.?managedBy.orValue('{_JOBSET}') in {makers}",
                "it would have no Job: set replicas in replicatedJobs, and leave managedBy out",
            ),
            (
                f"!has(params.status.used) || !('{JOBS}' in params.status.used)"
                f" || {_amount('used')} + variables.jobs <= {_amount('hard')}",
                f"no room for its Jobs in quota {QUOTA} of the namespace: delete finished JobSets and Jobs",
            ),
        ],
        {"jobs": f"request.kind.kind == 'TrainJob' ? {_OF_TRAINER} : {of_set}"},
        quota=QUOTA,
    )
