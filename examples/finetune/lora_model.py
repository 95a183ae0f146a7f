"""A small causal transformer over bytes, and LoRA: low-rank adapters beside its frozen weights.

LoRA: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", arXiv:2106.09685: y = W x + a/r B A x,
with A random and B zero at first, so that training begins at the base model.
"""

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 256  # bytes
BASE_FORMAT, ADAPTER_FORMAT = "trainstack.base/1", "trainstack.lora/1"


@dataclass(frozen=True)
class Shape:
    """Size of the model; `context` is its window in bytes."""

    width: int = 64
    heads: int = 4
    layers: int = 2
    context: int = 64


class Block(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.qkv: nn.Module = nn.Linear(shape.width, 3 * shape.width)
        self.out: nn.Module = nn.Linear(shape.width, shape.width)
        self.up: nn.Module = nn.Linear(shape.width, 4 * shape.width)
        self.down: nn.Module = nn.Linear(4 * shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, context, width) to the same shape."""
        batch, context, width = x.shape
        split = (batch, context, self.heads, width // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=2))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, context, width))
        hidden: Tensor = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return hidden


class Model(nn.Module):
    """Token and position embedding, blocks, output head."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(VOCABULARY, shape.width)
        self.positions = nn.Parameter(torch.zeros(shape.context, shape.width))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, VOCABULARY)

    def forward(self, batch: Tensor) -> Tensor:
        """Logits (batch, context, 256) of the next byte for ids (batch, context)."""
        x = self.tokens(batch) + self.positions[: batch.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    """Mean cross entropy of the next byte, in nats, of (batch, context + 1) ids."""
    logits = model(batch[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


class LoRA(nn.Module):
    """A frozen linear layer and the trained product of two thin matrices beside it."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base = base.requires_grad_(requires_grad=False)
        self.a = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        self.scale = alpha / rank
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        y: Tensor = self.base(x) + self.scale * functional.linear(functional.linear(x, self.a), self.b)
        return y


def adapt(model: Model, rank: int, alpha: float) -> list[nn.Parameter]:
    """Freeze the model and put adapters beside all linear layers of its blocks; the parameters to train."""
    model.requires_grad_(requires_grad=False)
    for block in model.blocks:
        for name, layer in list(block.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(block, name, LoRA(layer, rank, alpha))
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def adapter_of(model: Model) -> dict[str, Tensor]:
    """Return only the adapters of a model, by name."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return {name: value.detach().cpu() for name, value in model.state_dict().items() if name in trained}


def base_document(model: Model) -> dict[str, object]:
    """Return a base model in the form for `torch.save`."""
    return {"format": BASE_FORMAT, "shape": asdict(model.shape), "model": model.state_dict()}


def base_from(document: dict[str, object]) -> Model:
    """Build the base model of a document; ValueError for another document."""
    shape, weights = document.get("shape"), document.get("model")
    if document.get("format") != BASE_FORMAT or not isinstance(shape, dict) or not isinstance(weights, dict):
        raise ValueError(f"not a base model ({BASE_FORMAT})")
    try:
        model = Model(Shape(**shape))
        model.load_state_dict(weights)
    except (TypeError, RuntimeError) as error:
        raise ValueError(f"not a base model: {' '.join(str(error).split())[:300]}") from error
    return model
