"""Evaluate the output of the template finetune: a base model, or adapters with their base model.

    python evaluate.py --artifact model/                   # adapter.pt and base.pt of a fine-tuning
    python evaluate.py --artifact base.pt --data texts/    # a base model, on text of your own

A file of PyTorch can run code when it is loaded. This one loads tensors and nothing else (`weights_only`),
and refuses what does not load like that, or is not what it says it is.
"""

import argparse
import json
import math
import os
import pickle
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import torch

from lora_model import ADAPTER_FORMAT, BASE_FORMAT, Model, adapt, base_from, loss_of
from metrics import Metrics
from text import Text, read, task_text

BATCH = 64
REFUSED = 2


class ArtifactError(ValueError):
    """An untrusted or unusable artifact; the message names the file and the problem."""


def arguments() -> argparse.Namespace:
    """Command line options; folders come from the job if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    folder = os.environ.get
    parser.add_argument(
        "--artifact",
        type=Path,
        default=folder("TRAINSTACK_DATA") or None,
        help="a file, a folder, or the model.tar.gz of a training job; in a job, what --data gave it",
    )
    parser.add_argument("--base", type=Path, help="base model of an adapter; default: base.pt beside it")
    parser.add_argument("--data", type=Path, help="folder with .txt files; default: sentences made here")
    parser.add_argument("--examples", type=int, default=256, help="at most so many are looked at")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=folder("TRAINSTACK_OUTPUT", "output"))
    chosen = parser.parse_args()
    if chosen.artifact is None:
        parser.error("--artifact: missing")
    return chosen


def main() -> int:
    """Evaluate; return 0, or 2 for a refused artifact."""
    chosen = arguments()
    try:
        with tempfile.TemporaryDirectory() as unpacked:
            model, kind = load(chosen.artifact, chosen.base, Path(unpacked))
    except ArtifactError as error:
        sys.stderr.write(f"refused: {error}\n")
        return REFUSED
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    words = task_text(chosen.seed + 1) if chosen.data is None else read(chosen.data)
    found = measured(model.to(device), Text(words, model.shape.context).held_out(chosen.examples))
    metrics = Metrics()
    metrics.log(0, found)
    metrics.close()
    target = Path(chosen.output) / "metrics.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    document = {"artifact": str(chosen.artifact), "kind": kind, "seed": chosen.seed, "metrics": found}
    target.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def load(artifact: Path, base: Path | None, scratch: Path) -> tuple[Model, str]:
    """Load the model of an artifact, and its description; ArtifactError names a problem."""
    folder = artifact
    archive = artifact / "model.tar.gz" if artifact.is_dir() else artifact
    if archive.name.endswith(".tar.gz") and archive.is_file():
        folder = unpack(archive, scratch)
    if folder.is_dir():
        artifact = next((folder / n for n in ("adapter.pt", "base.pt") if (folder / n).is_file()), folder)
    document = tensors(artifact)
    if document.get("format") != ADAPTER_FORMAT:
        return based(artifact, document), BASE_FORMAT
    beside = base or artifact.parent / "base.pt"
    model = based(beside, tensors(beside))
    rank, alpha, weights = (document.get(key) for key in ("rank", "alpha", "adapter"))
    if not isinstance(rank, int) or not isinstance(alpha, int | float) or not isinstance(weights, dict):
        raise ArtifactError(f"{artifact}: not a whole adapter ({ADAPTER_FORMAT})")
    adapt(model, rank, alpha)
    try:
        missing, unexpected = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise ArtifactError(f"{artifact}: does not fit {beside}: {_line(error)}") from error
    lacking = [name for name in missing if name.endswith((".a", ".b"))]
    if lacking or unexpected:
        raise ArtifactError(f"{artifact}: does not fit {beside}: {', '.join([*lacking, *unexpected][:3])}")
    return model, ADAPTER_FORMAT


def unpack(archive: Path, scratch: Path) -> Path:
    """Return the folder with the output of a training job; ArtifactError for an unsafe archive."""
    try:
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ArtifactError(f"{archive}: {_line(error)}") from error
    return scratch


def tensors(path: Path) -> dict[str, Any]:
    """Load a file that may contain only tensors, numbers and texts, no code."""
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ArtifactError(f"{path}: holds more than tensors, so that loading it might run code") from error
    except (OSError, RuntimeError, EOFError) as error:
        raise ArtifactError(f"{path}: {_line(error)}") from error
    if not isinstance(found, dict):
        raise ArtifactError(f"{path}: got a {type(found).__name__}; must be a dictionary with a format")
    return found


def based(path: Path, document: dict[str, Any]) -> Model:
    """The base model in a document."""
    try:
        return base_from(document)
    except ValueError as error:
        raise ArtifactError(f"{path}: {error}") from error


@torch.no_grad()
def measured(model: Model, examples: torch.Tensor) -> dict[str, float]:
    """Loss (nats per byte), perplexity and the share of correctly predicted bytes."""
    model.eval()
    device = model.positions.device
    loss, right, count = 0.0, 0, 0
    for batch in torch.split(examples, BATCH):
        rows = batch.to(device)
        loss += float(loss_of(model, rows)) * len(rows)
        right += int((model(rows[:, :-1]).argmax(dim=2) == rows[:, 1:]).sum())
        count += len(rows)
    mean = loss / count
    return {"loss": mean, "perplexity": math.exp(mean), "accuracy": right / (count * model.shape.context)}


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
