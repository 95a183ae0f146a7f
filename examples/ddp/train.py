"""DistributedDataParallel training on one GPU, all GPUs of a machine or several machines: the same numbers.

    python train.py                                  # one process
    torchrun --nproc-per-node 2 train.py             # two; a job starts it like this

The batch is that of all processes together, so their number changes the speed alone. Resumes from the last
checkpoint, also with another number of processes.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from checkpoints import STOPPED, Checkpoints, Stop
from metrics import Metrics

EXAMPLES, INPUTS = 4096, 16
EVERY = 10  # steps between lines of the log
Batch = tuple[Tensor, Tensor]


def arguments() -> argparse.Namespace:
    """Command line options; folders come from the job if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64, help="examples of a step, of all processes together")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=50, help="steps between checkpoints")
    folder = os.environ.get
    parser.add_argument("--checkpoints", type=Path, default=folder("TRAINSTACK_CHECKPOINTS", "checkpoints"))
    parser.add_argument("--model", type=Path, default=folder("TRAINSTACK_MODEL", "model"))
    return parser.parse_args()


class World:
    """The processes of the run, and this one's device."""

    def __init__(self) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(self.device)
        if self.size > 1:
            dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")

    def any(self, asked: bool) -> bool:
        """True if any process must stop: all exit after the same step, or none could finish it."""
        if self.size == 1:
            return asked
        flag = torch.tensor(int(asked), device=self.device)
        dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag.item())

    def mean(self, value: Tensor) -> float:
        """The mean over all processes."""
        if self.size > 1:
            dist.all_reduce(value)
        return float(value) / self.size

    def close(self) -> None:
        """Exit together: the first process writes files before."""
        if self.size > 1:
            dist.barrier()
            dist.destroy_process_group()


def data(seed: int) -> TensorDataset:
    """Examples of a function that the model can learn: put your own `Dataset` here."""
    dice = torch.Generator().manual_seed(seed)
    inputs = torch.randn(EXAMPLES, INPUTS, generator=dice)
    mixed = torch.randn(INPUTS, 4, generator=dice)
    return TensorDataset(inputs, torch.tanh(inputs @ mixed).sum(dim=1, keepdim=True))


def network(seed: int) -> nn.Module:
    """The model, equal in every process: put your own here."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(INPUTS, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))


class Rest(DistributedSampler[Any]):
    """The examples of an epoch that this process has left after `done` steps."""

    done, share = 0, 0

    def __iter__(self) -> Iterator[int]:
        """The indices, in the order that seed and epoch decide."""
        return iter(list(super().__iter__())[self.done * self.share :])


def batches(world: World, chosen: argparse.Namespace, done: int) -> Iterator[Batch]:
    """The share of this process in every batch that is left after `done` steps."""
    dataset, share = data(chosen.seed), chosen.batch // world.size
    rest = Rest(dataset, world.size, world.rank, shuffle=True, seed=chosen.seed, drop_last=True)
    rest.share = share
    loader = DataLoader(dataset, batch_size=share, sampler=rest, drop_last=True)
    steps = EXAMPLES // chosen.batch
    for epoch in range(done // steps, chosen.epochs):
        rest.set_epoch(epoch)
        rest.done = max(0, done - epoch * steps)
        for inputs, targets in loader:
            yield inputs.to(world.device), targets.to(world.device)


def main() -> int:
    """Train; return 0, or the code of a stopped run."""
    chosen, stop, world = arguments(), Stop(), World()
    if chosen.batch % world.size or not 0 < chosen.batch <= EXAMPLES:
        raise SystemExit(f"--batch: got {chosen.batch}; must be a multiple of {world.size} processes")
    metrics, kept = Metrics(silent=world.rank > 0), Checkpoints(Path(chosen.checkpoints))
    plain = network(chosen.seed).to(world.device)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=chosen.lr)
    done, found = 0, kept.load()
    if found is not None:
        plain.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        done = found["step"]
        metrics.say(f"goes on after step {done}")
    model = DistributedDataParallel(plain) if world.size > 1 else plain

    def save() -> None:
        if world.rank == 0:
            kept.save(done, {"model": plain.state_dict(), "optimizer": optimizer.state_dict(), "step": done})

    for inputs, targets in metrics.watched(model, optimizer, batches(world, chosen, done), done):
        loss = functional.mse_loss(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        done += 1
        if done % EVERY == 0:
            metrics.log(done, {"loss": world.mean(loss.detach())})
        leaves = world.any(stop.asked)
        if leaves or done % chosen.save_every == 0:
            save()
        if leaves:
            metrics.say(f"stopped after step {done}, which is saved")
            metrics.close()
            world.close()
            return STOPPED
    save()
    if world.rank == 0:
        Checkpoints.write(Path(chosen.model) / "model.pt", {"model": plain.state_dict()})
    metrics.close()
    world.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
