"""Write the record of a run: result, samples, summary, baseline, and the MLflow run."""

import contextlib
import gzip
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smoke_training import evidence, files
from smoke_training.evidence import Evidence, line_of
from smoke_training.evidence.world import Finished, Lookup
from smoke_training.judges.run.baseline import fingerprint
from smoke_training.plan import Plan
from smoke_training.reader import UNFIT
from smoke_training.record import accepted, tracking
from smoke_training.record.html import page
from smoke_training.statistics import baseline as baselines

SAMPLES, PACKED = "samples.jsonl", "samples.jsonl.gz"  # beside the result, and as MLflow's artifact
SUMMARY, BASELINE = "summary.html", "baseline.json"
NAMES = (SAMPLES, PACKED, SUMMARY, BASELINE)

Result = dict[str, Any]


def baseline_lines(plan: Plan, found: Evidence, environment: Mapping[str, str], deadline: float) -> list[str]:
    """Return the evidence line of the baseline in MLflow, to be judged with all other lines.

    Empty when the plan brings its own, when one was looked up already, or when the run did not finish: only
    a run that passed is compared. `deadline` is in monotonic seconds.
    """
    own = fingerprint(plan, found)
    needless = plan.baseline is not None or found.of(Lookup) is not None
    if needless or own is None or found.of(Finished) is None:
        return []
    return [line_of(tracking.find(plan.stack, own, environment, deadline - time.monotonic()))]


def publish(
    result: Mapping[str, Any],
    samples: Sequence[str],
    path: Path | None,
    environment: Mapping[str, str],
    deadline: float,
) -> Result:
    """Write the files beside the result file at `path`, record the run, write the result again.

    Returns the final result; `path` is None where no file can be written. A full disk costs files,
    an unreachable tracking server the MLflow run; both are reported. Repeating it with the same
    result and samples writes the same files and completes the MLflow run.
    """
    found = evidence.parse(samples)
    made = artifacts(result, samples, found)
    final: Result = {**result, "artifacts": [_listed(name, made, result) for name in NAMES]}
    _write(path, made, final)
    uploads = {name: content for name, content in made.items() if name != SAMPLES}
    final["mlflow"] = tracking.record(final, found, environment, deadline, uploads)
    _write(path, {}, final)
    return final


def artifacts(result: Mapping[str, Any], samples: Sequence[str], found: Evidence) -> dict[str, bytes]:
    """Return the files by name; the same result and samples give the same bytes."""
    lines = text_of(samples)
    made = {SAMPLES: lines, PACKED: gzip.compress(lines, mtime=0)}
    # A file that cannot be made is listed as missing and must not affect the result.
    with contextlib.suppress(*UNFIT):
        made[SUMMARY] = page.render(result, found).encode()
    with contextlib.suppress(*UNFIT):
        if result["baseline"]["accepted"]:
            offered = baselines.render(accepted.baseline_of(result))
            made[BASELINE] = (json.dumps(offered, indent=1) + "\n").encode()
    return made


def text_of(samples: Sequence[str]) -> bytes:
    """The samples file: one line of evidence after the other."""
    return "".join(f"{line}\n" for line in samples).encode()


def beside(path: Path, name: str) -> Path:
    """Return the path of a file of this name next to the result file at `path`."""
    return path.with_suffix(f".{name}" if name != SUMMARY else ".html")


def _listed(name: str, made: Mapping[str, bytes], result: Mapping[str, Any]) -> dict[str, object]:
    if name in made:
        return {"name": name, "sha256": hashlib.sha256(made[name]).hexdigest(), "reason": None}
    refused = result["baseline"]["reason"] if name == BASELINE else None
    return {"name": name, "sha256": None, "reason": refused or "could not be rendered from this result"}


def _write(path: Path | None, made: Mapping[str, bytes], result: Result) -> None:
    """Write the result and the files next to it; a full disk must not affect the rest of the record."""
    if path is None:
        return
    for name in (SAMPLES, SUMMARY, BASELINE) if made else ():
        target = beside(path, name)
        with contextlib.suppress(OSError):
            if name in made:
                files.write_durably(target, made[name])
            else:
                target.unlink(missing_ok=True)  # an earlier run's must not pass for this one's
    with contextlib.suppress(OSError):
        files.write_json(path, result)
