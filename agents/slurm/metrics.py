"""Figures of a Slurm system for CloudWatch, each minute from its login node; standard library only.

Runs as root by a timer of systemd. Variables: NAMESPACE, REGION, and BLOCKS, the ends of capacity blocks in
UTC, separated by spaces. Commands of Slurm and `aws` are on PATH. A file without the rest of the tree.
"""

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

_GPUS = re.compile(r"\bgpu(?::(?:\(null\)|[^:,()]+))?:(\d+)")
_LIMIT = {kind: re.compile(rf"\b{kind}=(\d+)") for kind in ("billing", "gres/gpu")}
# Marks behind a state: not responding, powered off, booting, in maintenance (sinfo(1), NODE STATE CODES).
_MARKS, _AWAY, _SILENT = "*~#!%$@^-+", "*~#!%$^", "*"
_BROKEN = frozenset(("down", "drained", "draining", "fail", "failing", "error", "unknown"))
_RUNS = frozenset(("idle", "mixed", "allocated", "completing", "planned"))
# A job that waits for nodes, not for its quota, its budget or its owner.
_IN_LINE = ("Resources", "Priority", "None", "Nodes required", "ReqNodeNotAvail")
_PATIENCE_S = 40


def collected(now: datetime.datetime, blocks: str) -> dict[str, float]:
    """Values by name. Without a controller that answers, `ControllerUp` alone is there, with 0."""
    found = dict(_blocks(now, blocks))
    if "UP" not in _output("scontrol", "ping"):
        return {**found, "ControllerUp": 0.0}
    nodes = _output("sinfo", "--all", "--noheader", "--Node", f"--Format={_FIELDS}")
    found |= of_nodes(nodes)
    found |= of_queue(now, _output("squeue", "--all", "--noheader", "--states=PD", "--format=%V %r"))
    running = _output("squeue", "--all", "--noheader", "--states=R", "--format=%A")
    found["JobsRunning"] = float(len(running.split()))
    fields = "--format=Account,User,GrpTRESMins,GrpTRESRaw,TRESRunMins"
    shares = _output("sshare", "--all", "--noheader", "--parsable2", fields)
    return {**found, **of_budgets(shares), "ControllerUp": 1.0}


_FIELDS = "NodeList:128,StateLong:32,Gres:256,GresUsed:256"
_WIDTHS = (128, 32, 256, 256)


def of_nodes(text: str) -> dict[str, float]:
    """NodesDown, and GPUs of nodes that run: GpusRunning, GpusUsed, GpusIdle."""
    # A node of several partitions has several rows.
    down, gpus, used = set[str](), dict[str, int](), dict[str, int]()
    for line in text.splitlines():
        name, state, all_of, in_use = _cut(line)
        base = state.rstrip(_MARKS)
        marks = set(state[len(base) :])
        if base in _BROKEN or _SILENT in marks:
            down.add(name)
        if base in _RUNS and not marks & set(_AWAY):
            gpus[name] = sum(map(int, _GPUS.findall(all_of)))
            used[name] = sum(map(int, _GPUS.findall(in_use)))
    total, busy = sum(gpus.values()), sum(used.values())
    return {
        "NodesDown": float(len(down)),
        "GpusRunning": float(total),
        "GpusUsed": float(busy),
        "GpusIdle": float(total - busy),
    }


def _cut(line: str) -> Iterator[str]:
    start = 0
    for width in _WIDTHS:
        yield line[start : start + width].strip()
        start += width


def of_queue(now: datetime.datetime, text: str) -> dict[str, float]:
    """JobsWaiting, and LongestWaitMinutes of those that wait for nodes."""
    longest, count = 0.0, 0
    for line in text.splitlines():
        submitted, _, reason = line.strip().partition(" ")
        count += 1
        if reason.strip("()").startswith(_IN_LINE):
            since = datetime.datetime.fromisoformat(submitted).replace(tzinfo=now.tzinfo)
            longest = max(longest, (now - since).total_seconds() / 60)
    return {"JobsWaiting": float(count), "LongestWaitMinutes": round(longest, 1)}


def of_budgets(text: str) -> dict[str, float]:
    """BudgetUsedPercent: the largest of all accounts with a budget; empty without one."""
    shares = []
    for line in text.splitlines():
        _, user, limits, used, promised = line.split("|")[:5]
        for pattern in _LIMIT.values():
            limit = pattern.search(limits)
            if not user and limit and int(limit[1]):
                spent = sum(int(one[1]) for part in (used, promised) if (one := pattern.search(part)))
                shares.append(100 * spent / int(limit[1]))
    return {"BudgetUsedPercent": round(max(shares), 1)} if shares else {}


def _blocks(now: datetime.datetime, blocks: str) -> Iterator[tuple[str, float]]:
    left = [(datetime.datetime.fromisoformat(one) - now).total_seconds() / 60 for one in blocks.split()]
    if ahead := [one for one in left if one > 0]:
        yield "BlockMinutesLeft", round(min(ahead), 1)


def _output(*command: str) -> str:
    """The output; empty for a command that fails or does not end."""
    utc = {**os.environ, "TZ": "UTC"}
    utc.pop("SLURM_TIME_FORMAT", None)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S, env=utc
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def main() -> int:
    """Publish once."""
    now = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 - images have Python 3.10
    found = collected(now, os.environ.get("BLOCKS", ""))
    rows = [{"MetricName": name, "Value": value} for name, value in sorted(found.items())]
    place = ["--namespace", os.environ["NAMESPACE"], "--region", os.environ["REGION"]]
    command = ["aws", "cloudwatch", "put-metric-data", *place, "--metric-data", json.dumps(rows)]
    return subprocess.run(command, check=False, timeout=_PATIENCE_S).returncode


if __name__ == "__main__":
    sys.exit(main())
