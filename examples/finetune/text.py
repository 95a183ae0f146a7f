"""Training text: files of a folder, else generated sentences, so that no data is needed."""

import random
from pathlib import Path

import torch
from torch import Tensor

_WHO = ("the cat", "a dog", "the old man", "my sister", "the teacher", "a bird", "the farmer", "our friend")
_DOES = ("sees", "likes", "finds", "draws", "carries", "paints", "follows", "remembers")
_WHAT = ("the red house", "a small boat", "the long road", "a green apple", "the last train", "an open book")
HELD_OUT = 0.1  # the last tenth is never trained on


def base_text(seed: int, sentences: int = 4000) -> str:
    """Generate plain sentences, to train a base model."""
    dice = random.Random(seed)  # noqa: S311 - data, not secrets
    return "".join(
        f"{dice.choice(_WHO)} {dice.choice(_DOES)} {dice.choice(_WHAT)}.\n" for _ in range(sentences)
    )


def task_text(seed: int, pairs: int = 2000) -> str:
    """Generate questions and answers about such sentences, to fine-tune on."""
    dice = random.Random(seed)  # noqa: S311 - as above
    lines = []
    for _ in range(pairs):
        who, does, what = dice.choice(_WHO), dice.choice(_DOES), dice.choice(_WHAT)
        lines.append(f"Q: who {does} {what}? A: {who.upper()}!\n")
    return "".join(lines)


def read(folder: Path) -> str:
    """Join all .txt files of a folder; ValueError without any."""
    paths = sorted(folder.rglob("*.txt"))
    if not paths:
        raise ValueError(f"{folder}: has no .txt files")
    return "\n".join(path.read_text(errors="replace") for path in paths)


class Text:
    """Bytes of a text, the last tenth held out. ValueError if it is too short for one example each."""

    def __init__(self, text: str, context: int) -> None:
        data = torch.tensor(list(text.encode()), dtype=torch.long)
        cut = int(len(data) * (1 - HELD_OUT))
        self._train, self._held = data[:cut], data[cut:]
        self._length = context + 1
        if len(self._held) <= self._length:
            raise ValueError(f"the text has {len(data)} bytes; at least {11 * self._length} are needed")

    def batch(self, size: int, seed: int, step: int) -> Tensor:
        """Batch of a step: (size, context + 1) ids. It depends only on seed and step, so runs can resume."""
        dice = torch.Generator().manual_seed(seed * 1_000_003 + step)
        starts = torch.randint(len(self._train) - self._length, (size,), generator=dice)
        return torch.stack([self._train[start : start + self._length] for start in starts.tolist()])

    def held_out(self, most: int) -> Tensor:
        """At most so many held-out examples, (examples, context + 1)."""
        count = min(most, len(self._held) // self._length)
        return self._held[: count * self._length].view(count, self._length)
