"""Render the objects of Helm charts."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rehearsal.controlplane.api import Object
from rehearsal.controlplane.binaries import BINARIES
from rehearsal.controlplane.processes import StartError

_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Release:
    """Name and namespace of an installed chart."""

    name: str
    namespace: str


def render(
    helm: Path,
    chart: Path,
    release: Release,
    values: Mapping[str, Any],
    kubernetes: str = BINARIES["kube-apiserver"].version,
) -> list[Object]:
    """Objects of a chart's templates for a version of Kubernetes, with hooks. Raises StartError."""
    where = ["--namespace", release.namespace, "--kube-version", kubernetes]
    command = [str(helm), "template", release.name, str(chart), "--values", "-", *where]
    done = subprocess.run(
        command, input=json.dumps(dict(values)), capture_output=True, text=True, timeout=_PATIENCE_S,
        check=False, env={},
    )  # fmt: skip
    if done.returncode:
        raise StartError(f"helm cannot render {chart.name} with these values: {done.stderr.strip()}")
    # C loader: the others take 12 s for Kueue's chart of 1.7 MB.
    return [body for body in yaml.load_all(done.stdout, Loader=yaml.CSafeLoader) if body]
