"""A committed checkpoint that is damaged while no process reads it: after the kill, before the resume."""

import os
from dataclasses import dataclass
from pathlib import Path

from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Lab, Run


@dataclass
class TornCheckpoint(Injector):
    """The newest committed checkpoint of one node loses the second half of its largest file, or a bit flips.

    `folder` is a glob below a node's work folder that matches a checkpoint's step folders; their names sort
    by step. Committed is a step whose folder holds a `mark` on every node: the last one before the kill may
    not be, and no check would miss it.
    """

    node: int = 1
    how: str = "truncated"
    folder: str = "node-*/checkpoints/step-*"  # not **: folders vanish under a walk of the tree
    mark: str = "commit-node-*.json"
    damaged: str | None = None

    def watch(self, run: Run) -> None:
        if self.damaged is None and self._killed(run.lab):
            self._damage(run.lab)

    def _killed(self, lab: Lab) -> bool:
        return any(any(node.work_dir.glob("node-*/killed.json")) for node in lab.nodes)

    def _damage(self, lab: Lab) -> None:
        marked = [{mark.parent.name for mark in self._marks(node.work_dir)} for node in lab.nodes]
        committed = set.intersection(*marked)
        steps = sorted(
            path for path in lab.nodes[self.node].work_dir.glob(self.folder) if path.name in committed
        )
        files = [path for path in steps[-1].rglob("*") if path.is_file()] if steps else []
        if not files:
            raise InjectorError(f"node {self.node} has no committed {self.folder} to damage after the kill")
        target = max(files, key=lambda path: (path.stat().st_size, str(path)))
        size = target.stat().st_size
        damage(target, self.how)
        self.damaged = f"{target.relative_to(lab.nodes[self.node].work_dir)} ({size} bytes) was {self.how}"

    def _marks(self, work_dir: Path) -> list[Path]:
        return list(work_dir.glob(f"{self.folder}/{self.mark}"))

    def prove(self, run: Run) -> str:
        if self.damaged is None:
            raise InjectorError("no rank was killed, so no moment came to damage a checkpoint")
        return self.damaged


def damage(path: Path, how: str) -> None:
    """Truncate a file to half its size, or flip the lowest bit of the byte in its middle."""
    size = path.stat().st_size
    if how == "truncated":
        os.truncate(path, size // 2)
        return
    with path.open("r+b") as stream:
        stream.seek(size // 2)
        byte = stream.read(1)[0]
        stream.seek(size // 2)
        stream.write(bytes([byte ^ 1]))
