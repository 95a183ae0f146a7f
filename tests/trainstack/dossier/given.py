"""Facts of two recorded stacks for reports (`record.py` records them)."""

import dataclasses
import datetime
import functools
import gzip
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.engine.plan import DriftStep
from infra.errors import Problem, UserError
from infra.gate import gates
from infra.stackspec import load_file
from policies.run import AuditOptions, AuditSources, audit
from trainstack.advice import Question, advise
from trainstack.dossier.facts import Missing, StackFacts, ValidationResult
from trainstack.versions.pins import Pin, Row

AT = datetime.datetime(2026, 11, 28, 12, 0, tzinfo=datetime.UTC)
STACKS = ("dev-aws", "small-gcp")
_WAIVERS = """\
waivers:
  - rule: MLS-TAG-01
    resource: {urn: "urn:pulumi:*::aws:s3/bucket:Bucket::*"}
    reason: The tags of this example are set by the account.
    owner: ml-platform@example.com
    approvers: [security@example.com]
    ticket: SEC-12
    compensating_control: A weekly report lists what has no tags.
    created: 2026-11-01
    expires: 2026-12-10
"""


@functools.cache
def recorded(stack: str) -> Mapping[str, Any]:
    """The recorded state, outputs and result of a stack."""
    content = (Path(__file__).parent / "recorded" / f"{stack}.json.gz").read_bytes()
    return dict(json.loads(gzip.decompress(content)))


@functools.cache
def facts(stack: str) -> StackFacts:
    """All facts of a deployed stack, with findings of policies, a newer version, and a difference."""
    found = recorded(stack)
    loaded = load_file(stack)
    rows = found["resources"]
    pool = next(iter(loaded.spec.validated))
    return StackFacts(
        stack=stack,
        at=AT,
        version="0.1.0",
        rehearsed=True,
        loaded=loaded,
        problems=(),
        source="state",
        resources=rows,
        outputs=found["outputs"],
        gates=gates([row for row in rows if row.get("custom")]),
        results=[ValidationResult(pool, "s3://bucket/result.json", found["result"])],
        audit=judged(stack),
        versions=[
            Row(Pin("Kubernetes", "EKS", "1.35", "every node"), "1.36"),
            Row(Pin("chart", "kueue", "0.19.2", "nothing"), None, OSError("not reached")),
        ],
        drift=[DriftStep("update", "aws:s3/bucket:Bucket", f"{stack}-storage-datasets", ("tags",))],
        advice=advise(Question(7e9, 5e8, "lora"), (loaded.spec.cloud,), loaded.spec.region),  # type: ignore[arg-type]
    )


@functools.cache
def judged(stack: str) -> Any:
    """The audit of a recorded state, which lacks properties, so that there are findings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.json")
        path.write_text(json.dumps({"version": 3, "deployment": {"resources": recorded(stack)["resources"]}}))
        waivers = Path(folder, "waivers.yaml")
        waivers.write_text(_WAIVERS)
        return audit(AuditSources(state=path), AuditOptions(at=AT, waivers=waivers))


def unread(stack: str, code: str = "pulumi-not-logged-in") -> StackFacts:
    """A stack whose state could not be read; with the code `stack-not-found` one that the backend lacks."""
    why = "not logged in to a Pulumi backend"
    error = UserError([Problem("state", None, why, "Log in.", code=code)])
    return dataclasses.replace(absent(stack), why=why, unread=error)


def absent(stack: str) -> StackFacts:
    """A stack that was never deployed, of which nothing else could be read."""
    gap = Missing("nothing is deployed")
    return dataclasses.replace(
        facts(stack),
        source="none",
        why="nothing is deployed, and the stack file breaks rules",
        resources=(),
        outputs=None,
        gates=(),
        results=(),
        audit=gap,
        versions=gap,
        drift=gap,
    )
