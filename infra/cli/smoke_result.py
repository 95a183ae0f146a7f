"""The figures of the run that validated a deployment, read from its result file."""

import json
from dataclasses import dataclass
from typing import Any

from infra.outputs import StackOutputs
from infra.rehearsal.client import Rehearsal


@dataclass(frozen=True)
class SmokeFigures:
    """What a summary shows of a smoke run."""

    headline: str
    location: str


def read_figures(told: StackOutputs, rehearsal: Rehearsal | None) -> SmokeFigures | None:
    """The figures of the run; of a real cloud only where to find them, None without a smoke test."""
    if told.smoke is None:
        return None
    if rehearsal is None:
        return SmokeFigures("passed (the deployment would have failed otherwise)", told.smoke.result_uri)
    path = rehearsal.local_path(told.smoke.result_uri)
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        return SmokeFigures(f"the result cannot be read: {error}", str(path))
    return SmokeFigures(headline(result), str(path))


def headline(result: dict[str, Any]) -> str:
    """One line: verdict, scaling efficiency, ranks, duration."""
    parts = [str(result["verdict"])]
    for check in result["checks"]:
        measured, expected = check.get("measured") or {}, check.get("expected") or {}
        if check["id"] == "training.scaling_efficiency" and measured.get("value") is not None:
            parts.append(
                f"scaling efficiency {measured['value']:.2f} (expected at least {expected.get('value')})"
            )
    cluster = result["cluster"]
    parts.append(f"{len(cluster['ranks'])} ranks on {cluster['nodes']} nodes")
    parts.append(f"{result['duration_s']:.0f} s")
    return ", ".join(parts)
