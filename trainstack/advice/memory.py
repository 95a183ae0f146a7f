"""The memory that training needs: shared by all GPUs, and of each GPU (pure).

GB are 10^9 bytes. Formulae and their sources: `assumptions.toml`.
"""

from dataclasses import dataclass

from trainstack.advice.assumptions import assumed
from trainstack.advice.question import Question

_GB = 1e9


@dataclass(frozen=True)
class Need:
    """Memory in GB."""

    state_gb: float
    """Weights, gradients and optimizer, which can be sharded."""
    activations_gb: float
    """Of one sequence, on each GPU."""
    arithmetic: str
    """The computation as text."""

    def on_each(self, gpus: int) -> float:
        """GB on each of so many GPUs that shard the state."""
        return self.state_gb / gpus + self.activations_gb


def need(question: Question) -> Need:
    """The memory of a run with one sequence at a time on each GPU."""
    state, why = _state(question)
    layers, width = shape(question.parameters)
    kept = assumed("kept_bytes") * layers + assumed("layer_bytes")
    logits = assumed("vocabulary") * 6  # 16 bits, and their gradient in 32
    activations = question.context * (width * kept + logits)
    own = (
        f"{activations / _GB:,.1f} GB of activations on each GPU ({question.context:,} tokens x "
        f"({width:,.0f} wide x {kept:,.0f} bytes + {logits / 1e6:.2f} MB of logits))"
    )
    return Need(state / _GB, activations / _GB, f"{state / _GB:,.1f} GB of state ({why}); {own}")


def shape(parameters: float) -> tuple[float, float]:
    """Layers and width of a transformer with so many parameters: 12 x layers x width^2."""
    ratio = assumed("width_per_layer")
    layers = (parameters / (12 * ratio**2)) ** (1 / 3)
    return layers, ratio * layers


def _state(question: Question) -> tuple[float, str]:
    parameters, full = question.parameters, assumed("full_bytes")
    if question.method == "full":
        return parameters * full, f"{parameters:,.0f} parameters x {full:g} bytes"
    frozen = assumed("frozen_bytes" if question.method == "lora" else "frozen_4bit_bytes")
    adapters = parameters * assumed("adapter_share")
    why = f"{parameters:,.0f} frozen x {frozen:g} bytes, {adapters:,.0f} of adapters x {full:g}"
    return parameters * frozen + adapters * full, why
