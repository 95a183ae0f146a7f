"""A small causal language model on synthetic tokens: deterministic, no data set, no download."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from smoke_training.probes.group import Group


@dataclass(frozen=True)
class Size:
    """Shape of the model and of one rank's batch."""

    vocabulary: int
    width: int
    heads: int
    layers: int
    context: int
    batch: int
    dropout: float

    @property
    def tokens(self) -> int:
        """Tokens that one rank processes in one step."""
        return self.batch * self.context


CPU_TIMING = Size(vocabulary=256, width=64, heads=4, layers=2, context=64, batch=32, dropout=0.0)
GPU_TIMING = Size(vocabulary=32000, width=2048, heads=16, layers=8, context=1024, batch=4, dropout=0.0)
STATE = Size(vocabulary=64, width=32, heads=2, layers=2, context=32, batch=4, dropout=0.1)
PARITY = Size(vocabulary=64, width=32, heads=2, layers=1, context=16, batch=4, dropout=0.0)


class TransformerBlock(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm1 = nn.LayerNorm(size.width)
        self.qkv = nn.Linear(size.width, 3 * size.width)
        self.out = nn.Linear(size.width, size.width)
        self.norm2 = nn.LayerNorm(size.width)
        self.up = nn.Linear(size.width, 4 * size.width)
        self.down = nn.Linear(4 * size.width, size.width)
        self.drop = nn.Dropout(size.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, context, width) to the same shape."""
        batch, context, width = x.shape
        shape = (batch, context, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, dim=2))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(seen.transpose(1, 2).reshape(batch, context, width)))
        hidden: Tensor = x + self.drop(self.down(functional.gelu(self.up(self.norm2(x)))))
        return hidden


class Transformer(nn.Module):
    """Token and position embedding, blocks, tied-free output head."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Parameter(torch.zeros(size.context, size.width))
        self.blocks = nn.Sequential(*(TransformerBlock(size) for _ in range(size.layers)))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary)

    def forward(self, batch: Tensor) -> Tensor:
        """Mean next-token cross entropy of `batch` (batch, context + 1) token ids; a scalar."""
        inputs, targets = batch[:, :-1], batch[:, 1:]
        hidden = self.norm(self.blocks(self.tokens(inputs) + self.positions))
        logits = self.head(hidden)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build(size: Size, seed: int, device: torch.device, dtype: torch.dtype) -> Transformer:
    """Build the model with weights that depend on `seed` only, equal on every rank and every device."""
    torch.manual_seed(seed)
    return Transformer(size).to(device=device, dtype=dtype)


def tokens(size: Size, seed: int, index: int, device: torch.device) -> Tensor:
    """Return batch `index` of the synthetic data: (batch, context + 1) ids, a noisy arithmetic progression.

    The progression gives the loss something to learn; the noise keeps it from being trivial.
    """
    dice = torch.Generator().manual_seed(seed * 1_000_003 + index)
    start = torch.randint(size.vocabulary, (size.batch, 1), generator=dice)
    stride = torch.randint(1, 4, (size.batch, 1), generator=dice)
    noise = torch.randint(2, (size.batch, size.context + 1), generator=dice)
    line = start + stride * torch.arange(size.context + 1) + noise
    return (line % size.vocabulary).to(device)


def stream(group: Group, size: Size, seed: int, steps: int) -> Iterator[Tensor]:
    """Batches of this rank, one per step, created on demand: a loader without workers."""
    for step in range(steps):
        group.beat()
        yield tokens(size, seed, step * group.world + group.rank, group.device)
