"""Rules of the Job controller about failed pods and whole Jobs.

Source: kubernetes/kubernetes v1.36.2 pkg/controller/job (job_controller.go syncJob, pod_failure_policy.go,
success_policy.go, indexed_job_utils.go, backoff_utils.go) and pkg/apis/batch/v1/defaults.go.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rehearsal.workloads.translate import Object

_BACKOFF_LIMIT, _NO_LIMIT = 6, 2**31 - 1
# The conditions of a pod whose containers failed; pods are not disrupted here.
_FAILED_POD = {"PodScheduled": "True", "ContainersReady": "False", "Ready": "False"}


@dataclass(frozen=True)
class JobSpec:
    """The specification of a Job, with the API server's defaults.

    Without `completions` its pods share a work queue.
    """

    indexed: bool
    completions: int | None
    parallelism: int
    backoff_limit: int
    backoff_limit_per_index: int | None
    max_failed_indexes: int | None
    deadline_s: float | None
    restart: str
    failure_rules: Sequence[Object]
    success_rules: Sequence[Object]

    @property
    def slots(self) -> int:
        """Number of pods that have to succeed; those of a work queue all end by themselves."""
        return self.parallelism if self.completions is None else self.completions

    @staticmethod
    def parse(spec: Object) -> "JobSpec":
        """Read the `spec` of a Job."""
        parallelism, per_index = _whole(spec.get("parallelism")), _whole(spec.get("backoffLimitPerIndex"))
        completions, limit = _whole(spec.get("completions")), _whole(spec.get("backoffLimit"))
        alone = completions is None and parallelism is None
        unset = _BACKOFF_LIMIT if per_index is None else _NO_LIMIT
        deadline = spec.get("activeDeadlineSeconds")
        return JobSpec(
            indexed=spec.get("completionMode") == "Indexed",
            completions=1 if alone else completions,
            parallelism=1 if parallelism is None else parallelism,
            backoff_limit=unset if limit is None else limit,
            backoff_limit_per_index=per_index,
            max_failed_indexes=_whole(spec.get("maxFailedIndexes")),
            deadline_s=None if deadline is None else float(deadline),
            restart=str(spec["template"]["spec"].get("restartPolicy") or "Never"),
            failure_rules=(spec.get("podFailurePolicy") or {}).get("rules") or (),
            success_rules=(spec.get("successPolicy") or {}).get("rules") or (),
        )


@dataclass(frozen=True)
class FailedPod:
    """A failed pod: exit codes of its containers in order, init containers last."""

    namespace: str
    name: str
    exits: Mapping[str, int]


@dataclass(frozen=True)
class PodCounts:
    """Counts of the pods of a Job so far."""

    succeeded: Collection[int]
    failed: int
    failed_indexes: Collection[int]
    active: int
    restarts: int
    late: bool
    fail_job: str = ""


@dataclass(frozen=True)
class JobOutcome:
    """Outcome of a Job: `Complete` or `Failed`."""

    type: str
    reason: str
    message: str


def judge_pod(rules: Sequence[Object], pod: FailedPod) -> tuple[str, str]:
    """The action of the first rule of a pod failure policy that a failed pod matches, and its message.

    The action is empty without a match: the failure then counts.
    """
    for index, rule in enumerate(rules):
        about = _matching(rule, pod)
        if about:
            return str(rule["action"]), f"{about} matching {rule['action']} rule at index {index}"
    return "", ""


def _matching(rule: Object, pod: FailedPod) -> str:
    codes = rule.get("onExitCodes")
    if codes:
        for name, code in pod.exits.items():
            concerned = codes.get("containerName") in (None, name) and code != 0
            if concerned and (code in codes["values"]) is (codes["operator"] == "In"):
                return f"Container {name} for pod {pod.namespace}/{pod.name} failed with exit code {code}"
        return ""
    for wanted in rule.get("onPodConditions") or ():
        if _FAILED_POD.get(wanted["type"]) == (wanted.get("status") or "True"):
            return f"Pod {pod.namespace}/{pod.name} has condition {wanted['type']}"
    return ""


def judge(spec: JobSpec, tally: PodCounts) -> JobOutcome | None:
    """The outcome of a Job, None while it runs; checks are in the order of syncJob."""
    failure = _failure(spec, tally)
    return JobOutcome("Failed", *failure) if failure else _success(spec, tally)


def _failure(spec: JobSpec, tally: PodCounts) -> tuple[str, str] | None:
    failed, settled = len(tally.failed_indexes), len(tally.failed_indexes) + len(tally.succeeded)
    if tally.fail_job:
        return "PodFailurePolicy", tally.fail_job
    if tally.failed > spec.backoff_limit or _restarted_too_often(spec, tally.restarts):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if tally.late:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    if spec.max_failed_indexes is not None and failed > spec.max_failed_indexes:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    return ("FailedIndexes", "Job has failed indexes") if failed and settled >= spec.slots else None


def _success(spec: JobSpec, tally: PodCounts) -> JobOutcome | None:
    for index, rule in enumerate(spec.success_rules):
        if _satisfied(rule, tally.succeeded):
            return JobOutcome("Complete", "SuccessPolicy", f"Matched rules at index {index}")
    enough = bool(tally.succeeded) if spec.completions is None else len(tally.succeeded) >= spec.completions
    if enough and not tally.active:
        return JobOutcome("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _restarted_too_often(spec: JobSpec, restarts: int) -> bool:
    if spec.restart != "OnFailure":
        return False
    return restarts > 0 if spec.backoff_limit == 0 else restarts >= spec.backoff_limit


def _satisfied(rule: Object, succeeded: Collection[int]) -> bool:
    if not succeeded:
        return False
    count = _whole(rule.get("succeededCount"))
    wanted = rule.get("succeededIndexes")
    if wanted is None:
        return count is not None and len(succeeded) >= count
    indexes = set(_indexes(str(wanted)))
    reached = len(indexes & set(succeeded))
    return bool(indexes) and (reached == len(indexes) or (count is not None and reached >= count))


def _indexes(text: str) -> Iterator[int]:
    """The numbers of a text such as `1,3-5`."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def intervals(indexes: Collection[int]) -> str:
    """Numbers in the format of a Job's status: `1,3-5`, two neighbours as `1,2`."""
    found: list[list[int]] = []
    for index in sorted(indexes):
        if found and index == found[-1][-1] + 1:
            found[-1].append(index)
        else:
            found.append([index])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(str(index) for index in run) for run in found
    )


def _whole(value: object) -> int | None:
    return None if value is None else int(str(value).partition(".")[0])
