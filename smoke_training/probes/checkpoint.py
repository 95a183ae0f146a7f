"""Checkpoints that are either complete or refused.

One folder per step and rank: `state.pt`, then `manifest.json` with the SHA-256 of the file and of every
entry. Both are written to a temporary name, fsynced and renamed; the manifest comes last and is the commit
mark.
"""

import hashlib
import json
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from smoke_training.manifest import differences, entry_digest
from smoke_training.runtime.files import write_durably

State = dict[str, Any]


class TornCheckpointError(RuntimeError):
    """A checkpoint that is incomplete or whose bytes are not those its manifest promises."""


def snapshot(model: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int, position: int) -> State:
    """Everything the next step depends on, as flat entries: weights, optimizer, RNG, data position, step.

    Tensors are copies, so that training may go on while the snapshot is hashed or written.
    """
    state: State = {f"model/{name}": value.detach().clone() for name, value in model.state_dict().items()}
    saved = optimizer.state_dict()
    for index, entries in saved["state"].items():
        for name, value in entries.items():
            copied = value.detach().clone() if isinstance(value, torch.Tensor) else value
            state[f"optimizer/{index}/{name}"] = copied
    state["optimizer/groups"] = json.dumps(saved["param_groups"], sort_keys=True)
    state["rng/torch"] = torch.get_rng_state()
    state["rng/python"] = json.dumps(random.getstate())
    if torch.cuda.is_available():
        state["rng/cuda"] = torch.cuda.get_rng_state()
    state["data/position"] = position
    state["step"] = step
    return state


def restore(state: State, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> tuple[int, int]:
    """Load a snapshot into model, optimizer and the generators; returns (step, data position)."""
    model.load_state_dict(_below(state, "model/"))
    moments: dict[int, dict[str, Any]] = {}
    for key, value in _below(state, "optimizer/").items():
        index, _, name = key.partition("/")
        if name:
            moments.setdefault(int(index), {})[name] = value
    groups = json.loads(state["optimizer/groups"])
    for group in groups:
        group["betas"] = tuple(group["betas"])
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    torch.set_rng_state(state["rng/torch"])
    version, internal, gauss = json.loads(state["rng/python"])
    random.setstate((version, tuple(internal), gauss))
    if "rng/cuda" in state:
        torch.cuda.set_rng_state(state["rng/cuda"])
    return state["step"], state["data/position"]


def manifest(state: State) -> dict[str, str]:
    """SHA-256 of every entry's type, shape and raw bytes."""
    return {name: _digest(value) for name, value in state.items()}


def write(folder: Path, state: State) -> int:
    """Write a checkpoint durably; returns its bytes. A crash at any moment leaves it complete or refused."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "state.pt.partial"
    torch.save(state, partial)
    raw = partial.read_bytes()
    partial.unlink()
    write_durably(folder / "state.pt", raw)
    record = {"file_sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw), "entries": manifest(state)}
    write_durably(folder / "manifest.json", json.dumps(record).encode())
    return len(raw)


def read(folder: Path) -> State:
    """Read a checkpoint and prove every entry; TornCheckpointError says what is wrong with it."""
    try:
        record = json.loads((folder / "manifest.json").read_bytes())
        raw = (folder / "state.pt").read_bytes()
        promised: Mapping[str, str] = record["entries"]
        file_sha256 = record["file_sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TornCheckpointError(f"{folder.name}: incomplete ({error})") from error
    if hashlib.sha256(raw).hexdigest() != file_sha256:
        raise TornCheckpointError(
            f"{folder.name}: state.pt has {len(raw)} bytes that are not those of its manifest"
        )
    state: State = torch.load(folder / "state.pt", weights_only=True, map_location="cpu")
    wrong = differences(promised, manifest(state))
    if wrong:
        raise TornCheckpointError(f"{folder.name}: entries differ from the manifest: {', '.join(wrong[:5])}")
    return state


def complete_steps(root: Path, rank: int) -> list[int]:
    """Steps of which this rank holds a checkpoint that proves complete."""
    found = []
    for folder in sorted(root.glob(f"step-*/rank-{rank}")):
        try:
            read(folder)
        except TornCheckpointError:
            continue
        found.append(int(folder.parent.name.removeprefix("step-")))
    return found


def folder(root: Path, step: int, rank: int) -> Path:
    """Where the checkpoint of one step and rank lies."""
    return root / f"step-{step:08d}" / f"rank-{rank}"


def _truncate(target: Path) -> None:
    os.truncate(target / "state.pt", (target / "state.pt").stat().st_size // 2)


def _flip(target: Path) -> None:
    raw = bytearray((target / "state.pt").read_bytes())
    raw[len(raw) // 2] ^= 1
    (target / "state.pt").write_bytes(raw)


TEARS: Mapping[str, Callable[[Path], None]] = {
    "half the state file": _truncate,
    "one flipped bit": _flip,
    "no manifest": lambda target: (target / "manifest.json").unlink(),
    "no state file": lambda target: (target / "state.pt").unlink(),
    "half the manifest": lambda target: os.truncate(target / "manifest.json", 100),
}


def _digest(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu().contiguous()
        raw = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
        return entry_digest(str(value.dtype), tuple(value.shape), raw)
    return entry_digest(type(value).__name__, (), repr(value).encode())


def _below(state: State, prefix: str) -> State:
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
