"""One trial of a search by the service: a LoRA fine-tuning with the settings that it gives.

    python trial.py --lr 0.01 --rank 8 --alpha 16

sweep.toml says what the service searches, and how it finds the loss in the log.
"""

import argparse
import os
import sys
from pathlib import Path

from checkpoints import STOPPED
from metrics import Metrics
from sweep import Search, StoppedError


def arguments() -> argparse.Namespace:
    """What can be chosen; folders come from the job where there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--alpha", type=float, required=True)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--base-steps", type=int, default=100, help="of the base model of all trials")
    parser.add_argument("--seed", type=int, default=0)
    folder = os.environ.get
    parser.add_argument("--checkpoints", type=Path, default=folder("TRAINSTACK_CHECKPOINTS", "checkpoints"))
    return parser.parse_args()


def main() -> int:
    """Train; 0, or the code of a trial that was stopped."""
    chosen, metrics = arguments(), Metrics()
    chosen.trials = 1
    settings = {"lr": chosen.lr, "rank": chosen.rank, "alpha": chosen.alpha}
    try:
        loss = Search(chosen, metrics).train(0, settings, chosen.steps)
    except StoppedError:
        metrics.close()
        return STOPPED
    metrics.log(chosen.steps, {"held_out_loss": loss})
    metrics.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
