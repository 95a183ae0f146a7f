"""The figures of the run that validated a deployment, read from its result file."""

import json
from dataclasses import dataclass
from typing import Any

from infra.outputs import StackOutputs
from rehearsal.client import Rehearsal


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
    """One line: verdict with its main figures, ranks, duration."""
    cluster = result["cluster"]
    where = f"{len(cluster['ranks'])} {cluster['device']} ranks on {cluster['nodes']} nodes"
    return f"{result['headline']} ({where}, {result['duration_s']:.0f} s)"
