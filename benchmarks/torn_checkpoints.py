"""Tears checkpoints in every known way: is a torn one ever accepted, is a whole one ever lost?

    .venv/bin/python benchmarks/torn_checkpoints.py [tears] [seed]

Both forms: the shards of four ranks that a resumed run reads, and checkpoints of
torch.distributed.checkpoint. A tear cuts a file at a random place, removes a file or a rank's whole shard,
flips a random bit, or kills the writer at a random moment while it writes one checkpoint after another.
Accepted means: chosen for the resume although its bytes are not the ones that were saved.
"""

import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter  # noqa: E402
from torch.distributed.checkpoint.state_dict_loader import load  # noqa: E402
from torch.distributed.checkpoint.state_dict_saver import save  # noqa: E402

from smoke_training.manifest import Choice, Part, choose, differences  # noqa: E402
from smoke_training.probes.state import checkpoint, dcp  # noqa: E402
from smoke_training.statistics.wilson import wilson  # noqa: E402

RANKS = 4
STEPS = (4, 8, 12)
KILL_WITHIN_S = 0.25


def state(step: int, rank: int) -> checkpoint.State:
    """What a rank saves at a step: always the same, so that it can be recognised."""
    dice = torch.Generator().manual_seed(1000 * step + rank)
    return {"weight": torch.randn(64, 256, generator=dice), "step": step, "text": f"rank {rank}"}


def save_shards(root: Path, step: int) -> None:
    digests = {}
    for rank in range(RANKS):
        _, digests[rank] = checkpoint.write(checkpoint.folder(root, step, rank), state(step, rank))
    checkpoint.commit(root, step, 0, digests)


def choose_shards(root: Path) -> Choice:
    """As the restarted ranks do it."""
    marks = checkpoint.committed(root)
    parts = []
    for step in sorted({*checkpoint.steps(root), *marks}):
        for rank in range(RANKS):
            found = checkpoint.inspect(root, step, rank, marks.get(step, {}).get(rank))
            parts.append(
                Part(rank=rank, step=step, path=found.path, fault=found.fault, readable=found.readable)
            )
    return choose(parts, marks.keys(), RANKS)


def shards_equal(root: Path, step: int) -> bool:
    return all(
        not differences(
            checkpoint.manifest(state(step, rank)),
            checkpoint.manifest(checkpoint.read(checkpoint.folder(root, step, rank))),
        )
        for rank in range(RANKS)
    )


def save_dcp(root: Path, step: int) -> None:
    folder = root / f"checkpoint-{step}"
    writer = FileSystemWriter(folder, sync_files=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one process saves alone is what we want
        save({"weight": state(step, 0)["weight"]}, storage_writer=writer, no_dist=True)
    names = [*dcp.shards(folder, 0), folder / dcp.METADATA]
    dcp.write_mark(folder, 0, {path.name: dcp.sha256(path) for path in names})


def choose_dcp(root: Path) -> Choice:
    parts = []
    for folder in root.glob("checkpoint-*"):
        whole = dcp.is_complete(folder, 0, 0)
        step = int(folder.name.removeprefix("checkpoint-"))
        parts.append(Part(rank=0, step=step, path=str(folder), fault=None if whole else "torn"))
    return choose(parts, STEPS, 1)


def dcp_equal(root: Path, step: int) -> bool:
    fresh = {"weight": torch.zeros(64, 256)}
    reader = FileSystemReader(root / f"checkpoint-{step}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(fresh, storage_reader=reader, no_dist=True)
    return torch.equal(fresh["weight"], state(step, 0)["weight"])


class Form:
    """One form of checkpoint: how to save, choose and compare it, and which of its files may be torn."""

    def __init__(self, name: str) -> None:
        self.name, own = name, name == "shards"
        self.save: Callable[[Path, int], None] = save_shards if own else save_dcp
        self.choose: Callable[[Path], Choice] = choose_shards if own else choose_dcp
        self.equal: Callable[[Path, int], bool] = shards_equal if own else dcp_equal

    def files(self, root: Path, step: int) -> list[Path]:
        """Files that carry the state or prove it; shards prove themselves, so their mark is left alone."""
        folder = checkpoint.step_folder(root, step) if self.name == "shards" else root / f"checkpoint-{step}"
        found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return [path for path in found if self.name != "shards" or not path.name.startswith("commit-")]


def cut(dice: random.Random, paths: list[Path]) -> None:
    path = dice.choice(paths)
    os.truncate(path, dice.randrange(path.stat().st_size))


def remove(dice: random.Random, paths: list[Path]) -> None:
    path = dice.choice(paths)
    if dice.random() < 0.3 and path.parent.name.startswith("rank-"):
        shutil.rmtree(path.parent)
    else:
        path.unlink()


def flip(dice: random.Random, paths: list[Path]) -> None:
    path = dice.choice(paths)
    raw = bytearray(path.read_bytes())
    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    path.write_bytes(raw)


TEARS = {"cut": cut, "remove": remove, "flip": flip}


def torn(form: Form, kind: str, dice: random.Random, root: Path) -> str | None:
    """Tear the newest of three checkpoints; what is wrong with the choice that follows, or None."""
    for step in STEPS:
        form.save(root, step)
    if form.choose(root).step != STEPS[-1]:
        return "a whole checkpoint was refused"
    TEARS[kind](dice, form.files(root, STEPS[-1]))
    found = form.choose(root)
    if found.step == STEPS[-1]:
        return "ACCEPTED"
    if found.step != STEPS[-2] or not form.equal(root, STEPS[-2]):
        return f"fell back to {found.step} instead of {STEPS[-2]}"
    return None if found.damaged else "the damage was not reported"


def killed(form: Form, dice: random.Random, root: Path) -> str | None:
    """Kill a process that writes checkpoints without a pause; what is wrong with the choice, or None."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for step in range(1, 10_000):
                form.save(root, step)
                os.write(writer, step.to_bytes(4, "big"))
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(0.02 + dice.random() * KILL_WITHIN_S)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    told = b""
    while part := os.read(reader, 1 << 16):
        told += part
    os.close(reader)
    if not os.WIFSIGNALED(status):
        return "the writer ended by itself"
    acknowledged = int.from_bytes(told[-4:], "big") if told else None
    chosen = form.choose(root).step
    if chosen is not None and not form.equal(root, chosen):
        return "ACCEPTED"
    if (chosen or 0) < (acknowledged or 0):
        return f"step {acknowledged} was durable, {chosen} was chosen"
    return None


def main(tears: int, seed: int) -> int:
    torch.set_num_threads(1)
    dice = random.Random(seed)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    complaints = []
    began = time.perf_counter()
    for number in range(tears):
        form = Form(("shards", "dcp")[number % 2])
        kind = ("cut", "remove", "flip", "kill")[number // 2 % 4]
        with tempfile.TemporaryDirectory(prefix="torn-") as work:
            root = Path(work)
            wrong = killed(form, dice, root) if kind == "kill" else torn(form, kind, dice, root)
        counts[form.name, kind] += 1
        if wrong:
            complaints.append(f"{number} {form.name} {kind}: {wrong}")
            print(complaints[-1], flush=True)
    accepted = sum("ACCEPTED" in text for text in complaints)
    _, upper = wilson(accepted, tears)
    print(
        f"{accepted} of {tears} tears accepted (at most {upper:.1%} by Wilson, 95 %), {len(complaints)} "
        f"complaints, {time.perf_counter() - began:.0f} s, seed {seed}"
    )
    for (form_name, kind), count in sorted(counts.items()):
        print(f"  {form_name:8} {kind:8} {count}")
    return 1 if complaints else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(numbers + [200, 1][len(numbers) :])))
