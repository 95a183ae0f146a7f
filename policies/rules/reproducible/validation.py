"""Validation of training, from the state."""

import datetime
from collections.abc import Iterator
from typing import Any

from infra.gate import why
from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown, unknown_reason
from policies.rules.kubernetes.objects import metadata, namespace_of, namespaces_with
from policies.stack import Stack

_JOB, _CRON_JOB = "kubernetes:batch/v1:Job", "kubernetes:batch/v1:CronJob"
# Every object of a validation has the label (infra/launchers/pods.py). Its watcher is a Job of the
# same name there (components/kubernetes/validation/watcher.py); the name says what is validated.
_LABEL, _WATCHERS = "trainstack.dev/run", "trainstack-watch"


@CATALOG.rule_around(
    "MLS-REP-04",
    "high",
    (_JOB,),
    "Training on nodes without a validation shows a slow link only after a week, in the bill.",
    "Run `trainstack up`: it repeats validations that have not passed. See `trainstack status`.",
)
def training_was_validated(run: Resource, stack: Stack) -> Iterator[Violation]:
    """A validation of the current configuration has passed, and recently unless a schedule repeats it."""
    if metadata(run).get("namespace") == _WATCHERS:
        # This rule would miss a validation without its label; its watcher shows it.
        if metadata(run).get("name") not in stack.once(_validations):
            yield Violation("it watches no validation of this stack", "metadata.name")
        return
    if not _is_validation(run):
        raise NotApplicableError("it is no validation of training")
    watcher = stack.once(_watchers).get(metadata(run).get("name"))
    if watcher is None:
        yield Violation("the stack has no watcher of it", "metadata.name")
    elif watcher.init_errors:
        yield Violation(f"it did not pass: {why(watcher.init_errors)}", "metadata.name")
    else:
        yield from _aged(run, watcher, stack)


def _is_validation(job: Resource) -> bool:
    return bool((metadata(job).get("labels") or {}).get(_LABEL))


def _validations(stack: Stack) -> set[Any]:
    return {metadata(job).get("name") for job in stack.all(_JOB) if _is_validation(job)}


def _watchers(stack: Stack) -> dict[Any, Resource]:
    """The watchers, by the name that they share with their run."""
    jobs = stack.all(_JOB)
    return {metadata(job).get("name"): job for job in jobs if metadata(job).get("namespace") == _WATCHERS}


def _aged(run: Resource, watcher: Resource, stack: Stack) -> Iterator[Violation]:
    if is_unknown(watcher.modified):
        raise UndeterminedError(unknown_reason(watcher.modified))
    if watcher.modified is None:
        raise UndeterminedError("the time of its end is not known")
    if namespace_of(run) in stack.once(namespaces_with, _CRON_JOB):
        return  # a schedule repeats it and notifies of failures
    ended = watcher.modified.date()
    if stack.settings.today - ended > datetime.timedelta(days=stack.settings.most_validation_days):
        yield Violation(f"it passed on {ended}, and no schedule repeats it", "metadata.name")
