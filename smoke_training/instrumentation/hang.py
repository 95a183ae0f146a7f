"""Reading of torch's flight recorder when a loop makes no step: the collective that a rank did not enter.

Every rank reads its own recorder as JSON and publishes the last collective per process group; no dump of
another user is unpickled, as torch's own `fr_trace` does. torch 2.13 records gloo without any setting. Older
versions need TORCH_FR_BUFFER_SIZE or its older name (`runtime/flight_recorder.py`) above 0 before the process
group is made. Untested with NCCL.
"""

import json
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smoke_training.instrumentation.peers import Peers

ANSWER_S = 10.0  # time for the other ranks to publish theirs
LOOK_AT_MOST_S = 5.0

Trace = dict[str, dict[str, Any]]
"""By process group: number `seq` of the last collective, `what` it is, whether its rank `waits` in it."""


def own_trace() -> Trace:
    """Return the last collective of this process in every process group."""
    from torch._C import _distributed_c10d as c10d  # noqa: PLC0415 - needed in a hang only

    entries: list[dict[str, Any]] = []
    for name in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        if dump := getattr(c10d, name, None):
            entries += json.loads(dump(includeCollectives=True, onlyActive=False)).get("entries", [])
    return trace_of(entries)


def trace_of(entries: Iterable[Mapping[str, Any]]) -> Trace:
    """Return the last collective per group, from the entries of a recorder."""
    found: Trace = {}
    for entry in entries:
        kind = "p2p" if entry.get("is_p2p") else "collective"
        group = " ".join(map(str, entry["process_group"])) + (" (point to point)" if kind == "p2p" else "")
        number = entry[f"{kind}_seq_id"]
        if group not in found or number >= found[group]["seq"]:
            sizes = " ".join("x".join(map(str, size)) for size in entry.get("input_sizes", ()))
            what = f"{entry['profiling_name'].partition(':')[2]} {sizes}".strip()
            waits = not entry.get("retired") and entry.get("state") != "completed"
            found[group] = {"seq": number, "what": what, "waits": waits}
    return found


def reading(traces: Mapping[int, Trace | None], world: int) -> list[str]:
    """Return one statement per finding: silent ranks, and for each group the ranks that others wait for."""
    silent = [rank for rank in range(world) if traces.get(rank) is None]
    found = [f"{_ranks(silent)} did not answer"] if silent else []
    known = {rank: trace for rank, trace in traces.items() if trace is not None}
    for group in sorted({group for trace in known.values() for group in trace}):
        last = {rank: trace[group] for rank, trace in known.items() if group in trace}
        foremost = max(item["seq"] for item in last.values())
        waiting = [rank for rank, item in last.items() if item["seq"] == foremost and item["waits"]]
        behind = [rank for rank, item in last.items() if item["seq"] < foremost]
        if group.endswith("default_pg"):
            behind += known.keys() - last.keys()
        calls = {last[rank]["what"] for rank in waiting}
        if "point to point" in group:
            found += [f"{_ranks([rank])} waits in {last[rank]['what']}" for rank in waiting]
        elif len(calls) > 1:
            each = ", ".join(f"{_ranks([rank])} {last[rank]['what']}" for rank in waiting)
            found.append(f"ranks entered different collectives as number {foremost} of group {group}: {each}")
        elif waiting:
            where = f"{calls.pop()} (number {foremost} of group {group})"
            who = f"{_ranks(behind)} did not enter {where}; " if behind else ""
            wait = "waits" if len(waiting) == 1 else "wait"
            found.append(f"{who}{_ranks(waiting)} {wait}{'' if who else ' in ' + where}")
    return found or ["no rank waits in a recorded collective: read their stacks (py-spy dump)"]


class HangWatch(threading.Thread):
    """Reports, once per stall, a loop that made no step for `limit_s`; rank 0 compares the ranks."""

    def __init__(
        self, limit_s: float, peers: Peers, step: Callable[[], int], report: Callable[..., None]
    ) -> None:
        super().__init__(name="smoke-training-hang", daemon=True)
        self.beat = time.monotonic()  # written by the loop; infinite while it may take any time
        self._limit_s, self._peers, self._step, self._report = limit_s, peers, step, report
        self.watches, self._done = limit_s < math.inf and peers.world > 1, threading.Event()

    def stop(self) -> None:
        """Stop looking; waits, as a daemon thread inside of torch aborts the interpreter's end."""
        self._done.set()
        if self.is_alive():
            self.join(ANSWER_S)

    def run(self) -> None:
        """Look until `stop`."""
        reported = None
        while not self._done.wait(min(LOOK_AT_MOST_S, self._limit_s / 4)):
            beat = self.beat
            if beat == reported or time.monotonic() - beat < self._limit_s:
                continue
            reported = beat
            try:
                self._look()
            except Exception as error:  # must not reach the loop
                warnings.warn(
                    f"no step for {self._limit_s:.0f} s; no reading: {error}", RuntimeWarning, stacklevel=2
                )

    def _look(self) -> None:
        step, rank = self._step(), self._peers.rank
        own = own_trace()
        self._peers.post("hang", {"step": step, "trace": own})
        traces: dict[int, Trace | None] = {rank: own}
        until = time.monotonic() + max(ANSWER_S, self._limit_s / 2)
        others = set(range(self._peers.world)) - {rank} if rank == 0 else set()
        while others - traces.keys() and time.monotonic() < until and not self._done.is_set():
            for other in others - traces.keys():
                sent = self._peers.posted(other, "hang")
                if isinstance(sent, dict) and sent["step"] >= step - 1:
                    traces[other] = sent["trace"]
            time.sleep(0.2)
        waits = ", ".join(item["what"] for item in own.values() if item["waits"]) or "no recorded collective"
        texts = reading(traces, self._peers.world) if rank == 0 else [f"this rank waits in {waits}"]
        self._report(step, self._limit_s, texts)


def _ranks(ranks: Sequence[int]) -> str:
    """Return `rank 3`, `ranks 0-2, 5`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"
