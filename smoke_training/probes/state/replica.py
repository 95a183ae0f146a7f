"""Training run in which every part of the state matters, to test checkpoints."""

import hashlib
import json
import os
import random
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

from smoke_training.probes.group import Group
from smoke_training.probes.state.store import State
from smoke_training.probes.training import transformer

EPOCH_BATCHES = 6  # of one rank: epochs end at some checkpoints and between others


@dataclass
class BatchStream:
    """A shuffled, endless stream of batch numbers with its own state.

    Each epoch is a permutation drawn from a private generator. The state is the generator before the draw
    with the position, so that a state taken at the very end of an epoch neither repeats nor drops one.
    """

    seed: int
    epoch: int = 0
    position: int = 0
    order_sha256: str = ""  # chain over everything delivered so far
    generator: torch.Generator = field(default_factory=torch.Generator)

    def __post_init__(self) -> None:
        self.generator.manual_seed(self.seed)
        self._before = self.generator.get_state()
        self._order = self._draw()

    def next(self, *drawn: int) -> int:
        """Return the next batch number; it and `drawn` enter the hash of the data order."""
        if self.position == EPOCH_BATCHES:
            self.epoch, self.position, self._before = self.epoch + 1, 0, self.generator.get_state()
            self._order = self._draw()
        number = self.epoch * EPOCH_BATCHES + self._order[self.position]
        self.position += 1
        text = f"{self.order_sha256}|{(number, *drawn)}"
        self.order_sha256 = hashlib.sha256(text.encode()).hexdigest()
        return number

    def snapshot(self) -> State:
        """Return the entries of a checkpoint."""
        return {
            "loader/epoch": self.epoch,
            "loader/position": self.position,
            "loader/order": self.order_sha256,
            "loader/generator": self._before.clone(),
        }

    def load(self, state: State) -> None:
        """Continue from a snapshot."""
        self.epoch, self.position = state["loader/epoch"], state["loader/position"]
        self.order_sha256, self._before = state["loader/order"], state["loader/generator"].clone()
        self.generator.set_state(self._before)
        self._order = self._draw()

    def _draw(self) -> list[int]:
        return [int(i) for i in torch.randperm(EPOCH_BATCHES, generator=self.generator).tolist()]


def repeatable_group(group: Group) -> dist.ProcessGroup | None:
    """Return a group with bit-reproducible sums; None where all groups have them.

    NVLS adds in any order (NVIDIA/nccl#1497), rings in that of their ranks. `NCCL_NVLS_ENABLE` is read once a
    process, `NCCL_ALGO` for every communicator (`src/graph/tuning.cc`). Untested on hardware with NVLS.
    """
    if not group.cuda:
        return None
    os.environ["NCCL_ALGO"] = "Ring"
    made: dist.ProcessGroup = dist.new_group(
        timeout=timedelta(seconds=float(os.environ["SMOKE_GROUP_TIMEOUT"]))
    )
    return made


class TrainingReplica:
    """Model with dropout, AdamW, a learning-rate schedule, a shuffled stream, on one of all ranks."""

    def __init__(self, group: Group, seed: int) -> None:
        self.group, self.seed, self.size = group, seed, transformer.STATE
        if group.cuda:
            # Backward passes of attention and embedding add in any order on CUDA by default.
            # Not `warn_only`: with it, memory-efficient attention stays non-deterministic.
            torch.use_deterministic_algorithms(mode=True)
        self.network = transformer.build(self.size, seed, group.device, torch.float32)
        self.model = DistributedDataParallel(self.network, process_group=repeatable_group(group))
        self.optimizer = AdamW(self.network.parameters(), lr=1e-3)
        self.scheduler = CosineAnnealingWarmRestarts(self.optimizer, T_0=10)
        self.loader = BatchStream(seed + 1 + group.rank)
        self.step = 0
        torch.manual_seed(seed + 1 + group.rank)  # dropout differs per rank, as in real training
        random.seed(seed + 1 + group.rank)
        # DDP reorders its buckets after the first backward, which changes the order of additions. Two
        # throwaway passes put the first and every later attempt into that same final order before any
        # state is loaded.
        for _ in range(2):
            self.model(transformer.tokens(self.size, seed, 0, group.device)).backward()
            self.optimizer.zero_grad()

    def train(self) -> str:
        """One step; returns this rank's loss as an exact hexadecimal float."""
        draw = random.randrange(1 << 20)  # noqa: S311 - the augmentation whose generator state must be carried
        number = self.loader.next(draw) * self.group.world + self.group.rank
        batch = transformer.tokens(self.size, self.seed + draw, number, self.group.device)
        self.optimizer.zero_grad()
        loss = self.model(batch)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.step += 1
        return float(loss.detach()).hex()

    def snapshot(self) -> State:
        """Return everything the next step depends on, as flat entries; tensors are copies."""
        model, saved = self.network.state_dict(), self.optimizer.state_dict()
        state: State = {f"model/{name}": value.detach().clone() for name, value in model.items()}
        for index, entries in saved["state"].items():
            for name, value in entries.items():
                copied = value.detach().clone() if isinstance(value, torch.Tensor) else value
                state[f"optimizer/{index}/{name}"] = copied
        state["optimizer/groups"] = json.dumps(saved["param_groups"], sort_keys=True)
        state["scheduler"] = json.dumps(self.scheduler.state_dict(), sort_keys=True)
        state |= self.loader.snapshot()
        state["rng/torch"] = torch.get_rng_state()
        state["rng/python"] = json.dumps(random.getstate())
        if torch.cuda.is_available():
            state["rng/cuda"] = torch.cuda.get_rng_state()
        state["step"] = self.step
        return state

    def load(self, state: State) -> None:
        """Continue from a snapshot."""
        self.network.load_state_dict(below(state, "model/"))
        moments: dict[int, dict[str, Any]] = {}
        for key, value in below(state, "optimizer/").items():
            index, _, name = key.partition("/")
            if name:
                moments.setdefault(int(index), {})[name] = value
        groups = json.loads(state["optimizer/groups"])
        for group in groups:
            group["betas"] = tuple(group["betas"])
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.scheduler.load_state_dict(json.loads(state["scheduler"]))
        self.loader.load(state)
        torch.set_rng_state(state["rng/torch"])
        version, internal, gauss = json.loads(state["rng/python"])
        random.setstate((version, tuple(internal), gauss))
        if "rng/cuda" in state:
            torch.cuda.set_rng_state(state["rng/cuda"])
        self.step = state["step"]


def below(state: State, prefix: str) -> State:
    """Return the entries under a prefix, without it."""
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
