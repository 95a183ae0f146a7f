"""A search for settings of a LoRA fine-tuning by successive halving, one trial after the other.

    python sweep.py --trials 8 --steps 80

Trains `trials` drawn settings for a few steps, goes on with the better half for twice as many, until one is
left. Every result goes into a journal beside the checkpoints: an interrupted search goes on where it was.
"""

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import torch

from checkpoints import STOPPED, Checkpoints, Stop
from halving import Rung, drawn, rungs, survivors
from journal import Entry, Journal
from lora_model import Model, Shape, adapt, adapter_of, loss_of
from metrics import Metrics
from text import Text, base_text, task_text
from trials import Trials

BATCH, HELD_OUT = 16, 64


def arguments() -> argparse.Namespace:
    """What can be chosen; folders come from the job where there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--steps", type=int, default=80, help="of the trial that is left at the end")
    parser.add_argument("--base-steps", type=int, default=100, help="of the base model of all trials")
    parser.add_argument("--seed", type=int, default=0)
    folder = os.environ.get
    parser.add_argument("--checkpoints", type=Path, default=folder("TRAINSTACK_CHECKPOINTS", "checkpoints"))
    parser.add_argument("--output", type=Path, default=folder("TRAINSTACK_OUTPUT", "output"))
    return parser.parse_args()


class StoppedError(Exception):
    """The search was asked to stop."""


class Search:
    """The search of one set of arguments."""

    def __init__(self, chosen: argparse.Namespace, metrics: Metrics) -> None:
        self._seed, self._metrics, self._stop = chosen.seed, metrics, Stop()
        self._folder = Path(chosen.checkpoints)
        about = {name: getattr(chosen, name) for name in ("trials", "steps", "base_steps", "seed")}
        self.journal = Journal(self._folder / "journal.jsonl", about)
        self._rungs = rungs(chosen.trials, chosen.steps)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._trials = Trials()
        self._text = Text(task_text(chosen.seed + 1), Shape().context)
        self._base = self._base_model(chosen.base_steps)

    def run(self) -> tuple[int, float]:
        """All rounds; the trial that is left and its loss. StoppedError when asked to stop."""
        alive = list(range(self._rungs[0].trials))
        losses: dict[int, float] = {}
        for number, rung in enumerate(self._rungs):
            alive = list(survivors(losses, rung.trials)) if losses else alive
            last = number == len(self._rungs) - 1
            losses = {trial: self._trial(trial, rung, last=last) for trial in sorted(alive)}
        best = survivors(losses, 1)[0]
        return best, losses[best]

    def _trial(self, trial: int, rung: Rung, *, last: bool) -> float:
        """The loss of a trial after the steps of a round: from the journal, or trained now."""
        known = self.journal.loss(trial, rung.steps)
        if known is not None:
            return known
        settings = drawn(trial, self._seed)
        loss = self.train(trial, settings, rung.steps)
        status = "FINISHED" if math.isfinite(loss) else "FAILED"
        entry = Entry(trial, rung.steps, loss, self.journal.run_of(trial))
        self.journal.add(self._trials.record(entry, settings, status))
        chosen = " ".join(f"{name} {value:.4g}" for name, value in settings.items())
        self._metrics.say(f"trial {trial} {chosen} steps {rung.steps} loss {loss:.4f}{' (last)' * last}")
        return loss

    def train(self, trial: int, settings: dict[str, float], steps: int) -> float:
        """Train a trial up to so many steps in all, from where it was; the held-out loss."""
        model = Model(Shape())
        model.load_state_dict(self._base)
        torch.manual_seed(self._seed)
        trained = adapt(model, int(settings["rank"]), settings["alpha"])
        model.to(self._device)
        optimizer = torch.optim.AdamW(trained, lr=settings["lr"])
        kept, done = Checkpoints(self._folder / f"trial-{trial}", keep=1), 0
        found = kept.load()
        if found is not None:
            model.load_state_dict(found["adapter"], strict=False)
            optimizer.load_state_dict(found["optimizer"])
            done = found["step"]
        while done < steps and not self._stop.asked:
            loss_of(model, self._text.batch(BATCH, self._seed, done).to(self._device)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
            done += 1
        state: dict[str, Any] = {"adapter": adapter_of(model), "optimizer": optimizer.state_dict()}
        kept.save(done, {**state, "step": done})
        if self._stop.asked:
            raise StoppedError
        with torch.no_grad():
            return float(loss_of(model, self._text.held_out(HELD_OUT).to(self._device)))

    def _base_model(self, steps: int) -> dict[str, Any]:
        """Weights of the base model, the same for all trials; trained once."""
        path = self._folder / "base.pt"
        if path.exists():
            found: dict[str, Any] = torch.load(path, "cpu", weights_only=True)
            return found
        torch.manual_seed(self._seed)
        model = Model(Shape()).to(self._device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        text = Text(base_text(self._seed), model.shape.context)
        for number in range(steps):
            loss_of(model, text.batch(BATCH, self._seed, number).to(self._device)).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
        weights = {name: value.cpu() for name, value in model.state_dict().items()}
        Checkpoints.write(path, weights)
        return weights


def main() -> int:
    """Search; 0, or the code of a search that was stopped."""
    chosen, metrics = arguments(), Metrics()
    try:
        search = Search(chosen, metrics)
    except ValueError as error:
        raise SystemExit(str(error)) from error
    if search.journal.entries:
        metrics.say(f"goes on after {len(search.journal.entries)} results")
    try:
        trial, loss = search.run()
    except StoppedError:
        metrics.say(f"stopped after {len(search.journal.entries)} results, which are kept")
        metrics.close()
        return STOPPED
    settings = drawn(trial, chosen.seed)
    target = Path(chosen.output) / "best.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"trial": trial, "loss": loss, "settings": settings}, indent=1) + "\n")
    metrics.say(f"best: trial {trial} with {settings}")
    metrics.log(chosen.steps, {"best_loss": loss})
    metrics.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
