"""Jobs and CronJobs."""

import functools
import re
import zoneinfo
from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import cron, grammar
from rehearsal.kubernetes.rules.accessors import (
    Object,
    absent,
    at,
    mapping,
    name,
    pod,
    rows,
    text,
    unsure,
    whole,
)
from rehearsal.kubernetes.rules.book import BOOK, CRON_JOB, JOB, ClusterView, existing
from rehearsal.kubernetes.rules.violations import (
    IMMUTABLE,
    NEGATIVE,
    duplicate,
    invalid,
    required,
    unsupported,
)

_SOURCE = "kubernetes/kubernetes pkg/apis/batch/validation/validation.go"
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_INDEXED_ONLY = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
_ZONE_PART = re.compile(r"(?!-)[A-Za-z._0-9+-]{1,14}")
_STATUS = ("False", "True", "Unknown")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")


def _job(inputs: Properties) -> tuple[str, Object]:
    """The path and contents of the Job's specification."""
    if inputs["kind"] == "CronJob":
        return "spec.jobTemplate.spec", mapping(at(inputs, "spec.jobTemplate.spec"))
    return "spec", mapping(inputs.get("spec"))


@BOOK.rule("K8S-JOB-001", JOB, source=_SOURCE)
def _restart_policy(inputs: Properties) -> Iterator[Violation]:
    """The pods of a Job end."""
    view = pod(inputs)
    policy = view.spec.get("restartPolicy") if view else UNKNOWN
    if view is None or policy is UNKNOWN or policy in ("OnFailure", "Never"):
        return
    if policy in (None, "", "Always"):
        yield required(f"{view.path}.restartPolicy", 'valid values: "OnFailure", "Never"')
    else:
        yield unsupported(f"{view.path}.restartPolicy", policy, ("OnFailure", "Never"))


@BOOK.rule("K8S-JOB-002", JOB, CRON_JOB, source=_SOURCE)
def _indexed(inputs: Properties) -> Iterator[Violation]:
    """An indexed Job with a parallelism sets completions."""
    path, spec = _job(inputs)
    mode = spec.get("completionMode")
    if mode not in (None, UNKNOWN, "Indexed", "NonIndexed"):
        yield unsupported(f"{path}.completionMode", mode, ("Indexed", "NonIndexed"))
    # Without both, the API server sets both to 1.
    alone = spec.get("completions") is None and spec.get("parallelism") is not None
    if mode == "Indexed" and alone:
        yield required(f"{path}.completions", "when completion mode is Indexed")


@BOOK.rule("K8S-JOB-003", JOB, CRON_JOB, source=_SOURCE)
def _needs_indexes(inputs: Properties) -> Iterator[Violation]:
    """Limits per index, and policies about indexes, need indexes."""
    path, spec = _job(inputs)
    if spec.get("completionMode") not in ("Indexed", UNKNOWN):
        for key in _INDEXED_ONLY:
            if spec.get(key) is not None:
                shown = whole(spec[key]) if key != "successPolicy" else key
                yield invalid(f"{path}.{key}", shown, "requires indexed completion mode")
    elif spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    most, completions = whole(spec.get("maxFailedIndexes")), whole(spec.get("completions"))
    indexed = spec.get("completionMode") == "Indexed"
    if indexed and most is not None and completions is not None and most > completions:
        yield invalid(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions")


@BOOK.rule("K8S-JOB-004", JOB, CRON_JOB, source=_SOURCE)
def _failure_policy(inputs: Properties) -> Iterator[Violation]:
    """A pod failure policy is for pods that fail: their containers are not restarted."""
    path, spec = _job(inputs)
    policy = at(spec, "template.spec.restartPolicy")
    if not absent(spec.get("podFailurePolicy")) and policy == "OnFailure":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(f"{path}.template.spec.restartPolicy", policy, detail)


@BOOK.rule("K8S-JOB-005", JOB, CRON_JOB, source=_SOURCE)
def _failure_rules(inputs: Properties) -> Iterator[Violation]:
    """A rule of a pod failure policy has exit codes or conditions, and names existing containers."""
    path, spec = _job(inputs)
    known = [row.get("name") for group in ("containers", "initContainers")
             for _, row in rows(at(spec, f"template.spec.{group}"))]  # fmt: skip
    for index, rule in rows(at(spec, "podFailurePolicy.rules")):
        here = f"{path}.podFailurePolicy.rules[{index}]"
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if rule.get("action") not in (*_ACTIONS, UNKNOWN):
            yield unsupported(f"{here}.action", rule.get("action") or "", _ACTIONS)
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield invalid(f"{here}.action", "FailIndex", "requires the backoffLimitPerIndex to be set")
        if absent(codes) and absent(conditions):
            yield required(here, "specifying one of OnExitCodes and OnPodConditions is required")
        elif not absent(codes) and not absent(conditions):
            yield invalid(here, "", "specifying both OnExitCodes and OnPodConditions is not supported")
        about = mapping(codes).get("containerName")
        if isinstance(about, str) and about not in known and UNKNOWN not in known:
            detail = "must be one of the container or initContainer names in the pod template"
            yield invalid(f"{here}.onExitCodes.containerName", about, detail)


@BOOK.rule("K8S-JOB-009", JOB, CRON_JOB, source=_SOURCE)
def _failure_patterns(inputs: Properties) -> Iterator[Violation]:
    """Patterns of a pod failure policy are named conditions, or sorted exit codes."""
    path, spec = _job(inputs)
    for index, rule in rows(at(spec, "podFailurePolicy.rules")):
        here = f"{path}.podFailurePolicy.rules[{index}]"
        for place, row in rows(rule.get("onPodConditions")):
            own, status = text(row.get("type")), row.get("status")
            if own is not None and (wrong := grammar.label_key(own)):
                yield invalid(f"{here}.onPodConditions[{place}].type", own, wrong)
            if status not in (None, "", UNKNOWN, *_STATUS):
                yield unsupported(f"{here}.onPodConditions[{place}].status", status, _STATUS)
        if isinstance(codes := rule.get("onExitCodes"), dict):
            yield from _exit_codes(f"{here}.onExitCodes", codes)


def _exit_codes(path: str, codes: Object) -> Iterator[Violation]:
    operator, values = codes.get("operator"), codes.get("values")
    if absent(operator):
        yield required(f"{path}.operator")
    elif operator not in ("In", "NotIn", UNKNOWN):
        yield unsupported(f"{path}.operator", operator, ("In", "NotIn"))
    if absent(values):
        yield invalid(f"{path}.values", values, "at least one value is required")
    if not isinstance(values, list) or unsure(values):
        return
    for place, value in enumerate(values):
        if value == 0 and operator == "In":
            yield invalid(f"{path}.values[{place}]", value, "must not be 0 for the In operator")
        if value in values[:place]:
            yield duplicate(f"{path}.values[{place}]", value)
    numbers = [whole(value) or 0 for value in values]
    if numbers != sorted(numbers):
        yield invalid(f"{path}.values", values, "must be ordered")


@BOOK.rule_around("K8S-JOB-010", JOB, source=_SOURCE)
def _completions(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """Only an indexed Job changes its completions, together with its parallelism."""
    before, path = existing(world, inputs), "spec.completions"
    if before is None or unsure(inputs.get("spec")):
        return
    old, new = _asked(before.inputs), _asked(inputs)
    if old[0] != new[0]:
        if at(inputs, "spec.completionMode") != "Indexed":
            yield invalid(path, new[0], IMMUTABLE)
        elif new[0] is not None and new[0] != new[1]:
            yield invalid(path, new[0], "can only be modified in tandem with spec.parallelism")


def _asked(inputs: Properties) -> tuple[int | None, int]:
    """Completions and parallelism with their defaults: without parallelism, completions are 1."""
    completions, parallelism = whole(at(inputs, "spec.completions")), whole(at(inputs, "spec.parallelism"))
    return (
        1 if completions is None and parallelism is None else completions,
        1 if parallelism is None else parallelism,
    )


@BOOK.rule("K8S-JOB-006", JOB, CRON_JOB, source=_SOURCE)
def _counts(inputs: Properties) -> Iterator[Violation]:
    """Counts and limits are not negative."""
    path, spec = _job(inputs)
    for key in _COUNTS:
        number = whole(spec.get(key))
        if number is not None and number < 0:
            yield invalid(f"{path}.{key}", number, NEGATIVE)


@BOOK.rule("K8S-JOB-007", JOB, source=_SOURCE)
def _host_names(inputs: Properties) -> Iterator[Violation]:
    """The name and the largest index of an indexed Job make a host name, which is a DNS label."""
    own, completions = name(inputs), whole(at(inputs, "spec.completions"))
    if own is None or at(inputs, "spec.completionMode") != "Indexed" or completions is None:
        return
    longest = f"{own}-{max(0, completions - 1)}"
    if len(longest) > 63:
        prefix = f'will not able to create pod with invalid DNS label "{longest}"'
        detail = f"{prefix}: must be no more than 63 characters"
        yield invalid("metadata.name", own, detail)


@BOOK.rule("K8S-JOB-008", CRON_JOB, source=_SOURCE)
def _schedule(inputs: Properties) -> Iterator[Violation]:
    """A CronJob has a valid schedule and concurrency policy."""
    if absent(at(inputs, "spec.schedule")):
        yield required("spec.schedule")
    elif (own := text(at(inputs, "spec.schedule"))) and (wrong := cron.schedule(own)):
        yield invalid("spec.schedule", own, wrong, 'Write five fields such as "0 3 * * *", or @daily.')
    elif own and "TZ" in own:
        yield invalid("spec.schedule", own, "cannot use TZ or CRON_TZ in schedule", "Set timeZone.")
    for key in ("failedJobsHistoryLimit", "startingDeadlineSeconds", "successfulJobsHistoryLimit"):
        number = whole(at(inputs, f"spec.{key}"))
        if number is not None and number < 0:
            yield invalid(f"spec.{key}", number, NEGATIVE)
    zone = at(inputs, "spec.timeZone")
    if isinstance(zone, str) and not _known_zone(zone):
        yield invalid("spec.timeZone", zone, f"unknown time zone {zone}")
    policies, policy = ("Allow", "Forbid", "Replace"), at(inputs, "spec.concurrencyPolicy")
    if policy not in (None, "", UNKNOWN, *policies):
        yield unsupported("spec.concurrencyPolicy", policy, policies)


def _known_zone(name: str) -> bool:
    """Return whether a text is an IANA time zone; without the database, whether it has the form of one."""
    if not all(_ZONE_PART.fullmatch(part) and part not in (".", "..") for part in name.split("/")):
        return False
    return name.lower() != "local" and (name in _zones() or not _zones())


@functools.cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())
