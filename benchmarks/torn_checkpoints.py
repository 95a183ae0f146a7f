"""Damage checkpoints in every known way; count accepted damaged ones and lost complete ones.

    .venv/bin/python benchmarks/torn_checkpoints.py [tears] [seed]

A tear cuts a file at a random place, removes a file, flips a random bit, or kills the writer at a random
moment while it writes one checkpoint after another. Accepted means: chosen for the resume although its bytes
are not the ones that were saved.
"""

import collections
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch._C._distributed_c10d import HashStore  # noqa: E402
from torch.distributed.checkpoint.filesystem import FileSystemReader  # noqa: E402
from torch.distributed.checkpoint.state_dict_loader import load  # noqa: E402

from benchmarks.wilson import wilson  # noqa: E402
from smoke_training.checkpoint_files import mark_in, step_folder, steps  # noqa: E402
from smoke_training.evidence.state import Integrity  # noqa: E402
from smoke_training.probes.group import Group  # noqa: E402
from smoke_training.probes.state import store  # noqa: E402
from smoke_training.probes.state.resume import choose  # noqa: E402

STEPS = (4, 8, 12)
KILL_WITHIN_S = 0.5
GROUP = Group(rank=0, world=1, local_rank=0, node=0, device=torch.device("cpu"), backend="gloo")


def state(step: int) -> store.State:
    """What is saved at a step: always the same, so that it can be recognised."""
    dice = torch.Generator().manual_seed(1000 * step)
    return {"weight": torch.randn(64, 256, generator=dice), "step": step, "text": f"step {step}"}


def writing(root: Path, steps: Iterable[int]) -> tuple[int, int]:
    """Start a process that saves these steps and reports each durable one: its pid, a pipe to read from."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
        kept = store.CheckpointStore(GROUP, root, "resume")
        for step in steps:
            kept.save(state(step), step)
            os.write(writer, step.to_bytes(4, "big"))
    finally:
        os._exit(0)


def chosen(root: Path) -> Integrity:
    """Choose a checkpoint like the restarted ranks."""
    parts = [store.inspect(root, step, GROUP) for step in steps(root)]
    marked = [step for step in steps(root) if mark_in(step_folder(root, step))]
    return choose(parts, {*marked, *STEPS}, 1, str(root))


def equal(root: Path, step: int) -> bool:
    """Report whether a checkpoint restores the saved state."""
    folder = step_folder(root, step)
    fresh = store.own_state(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one process loads alone is what we want
        load(fresh, storage_reader=FileSystemReader(folder), no_dist=True)
    return not store.differences(store.manifest(state(step)), store.manifest(fresh))


def cut(dice: random.Random, paths: list[Path]) -> None:
    path = dice.choice(paths)
    os.truncate(path, dice.randrange(path.stat().st_size))


def remove(dice: random.Random, paths: list[Path]) -> None:
    dice.choice(paths).unlink()


def flip(dice: random.Random, paths: list[Path]) -> None:
    path = dice.choice(paths)
    raw = bytearray(path.read_bytes())
    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    path.write_bytes(raw)


TEARS = {"cut": cut, "remove": remove, "flip": flip}


def torn(kind: str, dice: random.Random, root: Path) -> str | None:
    """Tear the newest of three checkpoints; what is wrong with the choice that follows, or None."""
    child, reader = writing(root, STEPS)
    os.waitpid(child, 0)
    os.close(reader)
    if chosen(root).resumed_from != STEPS[-1]:
        return "a whole checkpoint was refused"
    TEARS[kind](dice, sorted(step_folder(root, STEPS[-1]).iterdir()))
    found = chosen(root)
    if found.resumed_from == STEPS[-1]:
        return "ACCEPTED"
    if found.resumed_from != STEPS[-2] or not equal(root, STEPS[-2]):
        return f"fell back to {found.resumed_from} instead of {STEPS[-2]}"
    return None if found.damaged else "the damage was not reported"


def killed(dice: random.Random, root: Path) -> str | None:
    """Kill a process that writes checkpoints without a pause; what is wrong with the choice, or None."""
    child, reader = writing(root, range(1, 10_000))
    result = os.read(reader, 4)  # the first reports its start
    time.sleep(dice.random() * KILL_WITHIN_S)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    while part := os.read(reader, 1 << 16):
        result += part
    os.close(reader)
    if not os.WIFSIGNALED(status):
        return "the writer ended by itself"
    acknowledged = int.from_bytes(result[-4:], "big")
    step = chosen(root).resumed_from
    if step is None or step < acknowledged:
        return f"step {acknowledged} was durable, {step} was chosen"
    return None if equal(root, step) else "ACCEPTED"


def main(tears: int, seed: int) -> int:
    torch.set_num_threads(1)
    dice = random.Random(seed)
    counts: collections.Counter[str] = collections.Counter()
    complaints = []
    began = time.perf_counter()
    for number in range(tears):
        kind = ("cut", "remove", "flip", "kill")[number % 4]
        with tempfile.TemporaryDirectory(prefix="torn-") as work:
            root = Path(work)
            wrong = killed(dice, root) if kind == "kill" else torn(kind, dice, root)
        counts[kind] += 1
        if wrong:
            complaints.append(f"{number} {kind}: {wrong}")
            print(complaints[-1], flush=True)
    accepted = sum("ACCEPTED" in text for text in complaints)
    _, upper = wilson(accepted, tears)
    print(
        f"{accepted} of {tears} tears accepted (at most {upper:.1%} by Wilson, 95 %), {len(complaints)} "
        f"complaints, {time.perf_counter() - began:.0f} s, seed {seed}"
    )
    for kind, count in sorted(counts.items()):
        print(f"  {kind:8} {count}")
    return 1 if complaints else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(numbers + [200, 1][len(numbers) :])))
