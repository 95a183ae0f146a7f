"""LoRA fine-tuning in plain torch: a frozen base model, small trained adapters, a loss that has to fall.

    python train.py                                  # alone: trains a small base model first
    python train.py --base base.pt --data texts/     # weights and text of your own

Resumes from the last checkpoint, to the same numbers as without the interruption.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from checkpoints import STOPPED, Checkpoints, Stop
from lora_model import ADAPTER_FORMAT, Model, Shape, adapt, adapter_of, base_document, base_from, loss_of
from metrics import Metrics
from text import Text, base_text, read, task_text

HELD_OUT = 64  # examples for the evaluation
EVERY = 10  # steps between lines of the log


def arguments() -> argparse.Namespace:
    """Command line options; folders come from the job if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", type=Path, help="base model (base.pt, or its folder); default: train one")
    parser.add_argument("--data", type=Path, help="folder with .txt files; default: sentences made here")
    parser.add_argument("--steps", type=int, default=300, help="steps of the fine-tuning")
    parser.add_argument("--base-steps", type=int, default=200, help="steps of the base model, without --base")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--rank", type=int, default=8, help="of the adapters")
    parser.add_argument("--alpha", type=float, default=16.0, help="adapters count alpha / rank")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=50, help="steps between checkpoints")
    folder = os.environ.get
    parser.add_argument("--checkpoints", type=Path, default=folder("TRAINSTACK_CHECKPOINTS", "checkpoints"))
    parser.add_argument("--model", type=Path, default=folder("TRAINSTACK_MODEL", "model"))
    chosen = parser.parse_args()
    given = os.environ.get("TRAINSTACK_DATA", "")
    if chosen.data is None and given and Path(given).is_dir():
        chosen.data = Path(given)
    return chosen


def main() -> int:
    """Train; return 0, or the code of a stopped run."""
    chosen, stop = arguments(), Stop()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit("this template trains on one GPU: the template ddp shows several")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    metrics, kept = Metrics(), Checkpoints(Path(chosen.checkpoints))
    model = base_model(chosen, device, metrics)
    words = task_text(chosen.seed + 1) if chosen.data is None else read(chosen.data)
    text = Text(words, model.shape.context)
    torch.manual_seed(chosen.seed)  # the same adapters whether or not the base model was trained just now
    trained = adapt(model, chosen.rank, chosen.alpha)
    optimizer = torch.optim.AdamW(trained, lr=chosen.lr)
    model.to(device)
    held_out = text.held_out(HELD_OUT).to(device)

    done, before = 0, evaluate(model, held_out)  # adapters start at zero: this is the base model
    found = kept.load()
    if found is not None:
        model.load_state_dict(found["adapter"], strict=False)
        optimizer.load_state_dict(found["optimizer"])
        done, before = found["step"], found["before"]
        metrics.say(f"goes on after step {done}")
    else:
        metrics.log(0, {"held_out_loss": before})

    def save() -> None:
        state = {"adapter": adapter_of(model), "optimizer": optimizer.state_dict()}
        kept.save(done, {**state, "step": done, "before": before})

    for batch in metrics.watched(model, optimizer, batches(text, chosen, done, device), done):
        loss = step(model, optimizer, batch)
        done += 1
        if done % EVERY == 0 or done == chosen.steps:
            metrics.log(done, {"loss": loss.item()})
        if done % chosen.save_every == 0 or stop.asked:
            save()
        if stop.asked:
            metrics.say(f"stopped after step {done}, which is saved")
            metrics.close()
            return STOPPED
    save()
    return finish(chosen, model, metrics, before, evaluate(model, held_out))


def base_model(chosen: argparse.Namespace, device: torch.device, metrics: Metrics) -> Model:
    """The given base model, the one of an earlier attempt, or one that is trained now and kept."""
    own = Path(chosen.checkpoints) / "base.pt"
    if chosen.base is not None or own.exists():
        path = chosen.base or own
        document = torch.load(path / "base.pt" if path.is_dir() else path, "cpu", weights_only=True)
        return base_from(document)
    torch.manual_seed(chosen.seed)
    model = Model(Shape()).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    text = Text(base_text(chosen.seed), model.shape.context)
    for number in range(chosen.base_steps):
        loss = step(model, optimizer, text.batch(chosen.batch, chosen.seed, number).to(device))
        if (number + 1) % 50 == 0:
            metrics.say(f"base model: step {number + 1} loss {loss.item():.4f}")
    Checkpoints.write(own, base_document(model))
    return model.cpu()


def batches(text: Text, chosen: argparse.Namespace, done: int, device: torch.device) -> Iterator[Tensor]:
    """The batches that are left."""
    return (text.batch(chosen.batch, chosen.seed, n).to(device) for n in range(done, chosen.steps))


def step(model: Model, optimizer: torch.optim.Optimizer, batch: Tensor) -> Tensor:
    """One step, in bfloat16 where there is a GPU; the loss."""
    with torch.autocast(batch.device.type, torch.bfloat16, enabled=batch.is_cuda):
        loss = loss_of(model, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


@torch.no_grad()
def evaluate(model: Model, held_out: Tensor) -> float:
    """Loss on text that is never trained on, in nats per byte."""
    return float(loss_of(model, held_out))


def finish(chosen: argparse.Namespace, model: Model, metrics: Metrics, before: float, after: float) -> int:
    """Write the adapters and their evaluation; return 1 if the loss did not fall."""
    folder = Path(chosen.model)
    metrics.log(chosen.steps, {"held_out_loss": after})
    metrics.record(chosen.steps, {"held_out_loss_before": before, "held_out_loss_after": after})
    about = {"format": ADAPTER_FORMAT, "rank": chosen.rank, "alpha": chosen.alpha}
    Checkpoints.write(folder / "adapter.pt", {**about, "adapter": adapter_of(model)})
    if chosen.base is None:  # loading the adapter needs its base model
        (folder / "base.pt").write_bytes((Path(chosen.checkpoints) / "base.pt").read_bytes())
    metrics.say(f"held-out loss {before:.4f} before, {after:.4f} after; adapter in {folder}")
    metrics.close()
    if after < before:
        return 0
    sys.stderr.write(f"the loss did not fall: {before:.4f} before, {after:.4f} after\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
