"""Shared parts of the controllers of Deployments and Jobs."""

import hashlib
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.translate import Object

Status = dict[str, Any]
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # alphabet of generated names in Kubernetes


@dataclass(frozen=True)
class PodOrder:
    """A pod to start; `slot` identifies its address, so that a successor has its predecessor's."""

    name: str
    slot: str
    spec: Object
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cpus: Sequence[int] = ()


# Makes a pod, not started yet, with a restart policy; the callback is called on every change.
Spawn = Callable[[PodOrder, str, Callable[[], None]], PodRunner]


class Workload(Protocol):
    """A running Deployment or Job."""

    def pods(self) -> list[PodRunner]:
        """Its pods, ended ones included."""

    def status(self) -> Status:
        """Status for the API server."""

    def stop(self, *, now: bool = False) -> None:
        """End every pod; returns when none of their processes runs."""


def letters(seed: str, length: int) -> str:
    """A generated name part as in Kubernetes, deterministic for a seed."""
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:length])


def timestamp() -> str:
    """Now, in the format of the API server."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shares(count: int) -> list[list[int]]:
    """The machine's processors divided among `count` pods: equal shares, or one each in turn when scarce."""
    cpus = sorted(os.sched_getaffinity(0))
    if count >= len(cpus):
        return [[cpus[index % len(cpus)]] for index in range(count)]
    size, extra = divmod(len(cpus), count)
    bounds = [index * size + min(index, extra) for index in range(count + 1)]
    return [cpus[start:end] for start, end in itertools.pairwise(bounds)]


def complaints(pods: Sequence[PodRunner]) -> list[str]:
    """Problems of pods with the provider's messages, most specific first."""
    found = [complaint for runner in pods if (complaint := _complaint(runner))]
    return sorted(dict.fromkeys(found), key=len, reverse=True)


def _complaint(runner: PodRunner) -> str:
    state, pod = runner.state, runner.pod
    who = f"[Pod {pod.namespace}/{pod.name}]: "
    if state.ready or state.phase == "Succeeded" or not state.run:
        return ""
    if state.reason == "Unschedulable":
        return who + state.message
    names = " ".join(str(container["name"]) for container in pod.spec.get("containers") or ())
    unready = f"{who}containers with unready status: [{names}]"
    if state.exit_code is not None:
        reason = f"[{state.reason}] {state.message}" if state.message else ""
        return (
            unready
            + " "
            + (reason or f'container "{state.container}" completed with exit code {state.exit_code}')
        )
    if state.reason:
        return f"{unready} [{state.reason}] {state.message}"
    return unready + (f" {state.message}" if state.message else "")


def stop_all(pods: Sequence[PodRunner], *, now: bool) -> None:
    """End pods together and wait for them."""
    for runner in pods:
        runner.stop(now=now)
    for runner in pods:
        if not runner.join(8.0):
            runner.stop(now=True)
            runner.join(2.0)
