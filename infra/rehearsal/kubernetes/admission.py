"""What the API server refuses about an object's own contents, beyond names and types."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.rehearsal.kubernetes.kinds import Kind
from infra.rehearsal.kubernetes.naming import label_problems, problem
from infra.rehearsal.model import Properties, RefusalError
from infra.rehearsal.workloads import quantity


def admit(kind: Kind, inputs: Properties) -> None:
    """Raise RefusalError with everything that the API server finds wrong with a new or changed object."""
    found = list(_problems(kind, inputs))
    if found:
        group = f".{kind.group}" if kind.group else ""
        name = (inputs.get("metadata") or {}).get("name")
        text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        raise RefusalError("Invalid", f'{kind.kind}{group} "{name}" is invalid: {text}')


def _problems(kind: Kind, inputs: Properties) -> Iterator[str]:
    metadata = inputs.get("metadata") or {}
    if wrong := problem(kind, metadata.get("name")):
        yield f"metadata.name: {wrong}"
    yield from (f"metadata.labels: {text}" for text in label_problems(metadata.get("labels")))
    spec = inputs.get("spec")
    if not isinstance(spec, Mapping):
        return
    if kind == Kind("apps", "v1", "Deployment"):
        yield from _deployment(spec)
    elif kind == Kind("batch", "v1", "Job"):
        yield from _job(metadata, spec)
    elif kind == Kind("", "v1", "Service"):
        portless = spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None"
        if not portless and not spec.get("ports"):
            yield "spec.ports: Required value"


def _deployment(spec: Mapping[str, Any]) -> Iterator[str]:
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    if not wanted.items() <= labels.items():
        yield "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`"
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in (None, "Always"):
        yield f'spec.template.spec.restartPolicy: Unsupported value: "{policy}": supported values: "Always"'
    yield from _pod(template.get("spec") or {}, "spec.template.spec")


def _job(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    pod = (spec.get("template") or {}).get("spec") or {}
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        yield (
            f'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never" '
            f"(got {pod.get('restartPolicy')!r})"
        )
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            yield "spec.completions: Required value: when completion mode is Indexed"
        longest = f"{metadata.get('name')}-{max(0, int(spec.get('completions') or 1) - 1)}"
        if len(longest) > 63:
            yield f'metadata.name: Invalid value: "{longest}": must be no more than 63 characters'
    yield from _pod(pod, "spec.template.spec")


def _pod(pod: Mapping[str, Any], path: str) -> Iterator[str]:
    """Volumes that mounts name, and quantities of resources."""
    volumes = {volume.get("name") for volume in pod.get("volumes") or ()}
    if not pod.get("containers"):
        yield f"{path}.containers: Required value"
    for group in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(group) or ()):
            here = f"{path}.{group}[{index}]"
            for number, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    yield f'{here}.volumeMounts[{number}].name: Not found: "{mount.get("name")}"'
            yield from _resources(container.get("resources") or {}, f"{here}.resources")


def _resources(resources: Mapping[str, Any], path: str) -> Iterator[str]:
    amounts: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for side, found in amounts.items():
        for name, text in (resources.get(side) or {}).items():
            try:
                found[name] = quantity.parse(text)
            except ValueError as error:
                yield f"{path}.{side}[{name}]: Invalid value: {error}"
    for name, asked in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is not None and asked > limit:
            yield f'{path}.requests: Invalid value: "{asked}": must be less than or equal to {name} limit'
    for name, limit in amounts["limits"].items():
        if "/" in name and amounts["requests"].get(name, limit) != limit:
            yield f"{path}.requests: Invalid value: must be equal to {name} limit of {limit}"
