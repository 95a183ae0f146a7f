"""Kill a rank at a random step repeatedly, and compare the resumed with the interrupted run.

    .venv/bin/python benchmarks/kill_resume.py [trials] [results.jsonl] [at most this many now]

Each trial is a real job of four ranks that runs only the phase `resume`: an uninterrupted run, the same run
cut by SIGKILL at a step drawn from the trial's seed, the restart, the comparison. Trials already in the
results file are not repeated, so that a stopped benchmark goes on where it was.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.wilson import wilson  # noqa: E402
from smoke_training.evidence.state import Integrity, Resume  # noqa: E402
from tests.smoke_training.jobs import bundle, partial_job  # noqa: E402

RANKS = 4
FIRST_SEED = 1000
MTTR_LIMIT_S = 15.0


def trial(seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="kill-resume-") as home:
        began = time.monotonic()
        job = partial_job(bundle(Path(home)), Path(home), ("resume",), nodes=1, ranks=RANKS, seed=seed)
        job.finish()
        seconds = time.monotonic() - began
        found, result = job.found(), job.result()
    outcome, integrity = found.of(Resume), found.of(Integrity)
    checks = {check["id"]: check["status"] for check in result["checks"] if check["required"]}
    record: dict[str, Any] = {
        "seed": seed,
        "seconds": seconds,
        "verdict": result["verdict"],
        "checks": checks,
    }
    if outcome is None or integrity is None:
        return {**record, "equal": False, "headline": result["headline"]}
    ranks = outcome.ranks
    entries, different = sum(r.entries for r in ranks), sum(len(r.different) for r in ranks)
    compared, same = sum(r.losses_compared for r in ranks), sum(r.losses_equal for r in ranks)
    whole = len(ranks) == RANKS and all(r.entries and r.losses_compared >= 5 for r in ranks)
    return {
        **record,
        "equal": whole and different == 0 and same == compared and result["verdict"] == "PASS",
        "entries": entries,
        "different": different,
        "losses_compared": compared,
        "losses_equal": same,
        "victim": outcome.victim,
        "killed_at_step": outcome.killed_at_step,
        "resumed_from": outcome.resumed_from,
        "lost_steps": outcome.killed_at_step - outcome.resumed_from,
        "mttr_s": outcome.mttr_seconds,
        "damaged": len(integrity.damaged),
    }


def main(trials: int, path: Path, at_most: int) -> int:
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {record["seed"] for record in done}
    wanted = [seed for seed in range(FIRST_SEED, FIRST_SEED + trials) if seed not in known]
    for seed in wanted[:at_most]:
        record = trial(seed)
        done.append(record)
        with path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")
        result = {key: record.get(key) for key in ("seed", "equal", "killed_at_step", "mttr_s", "verdict")}
        print(result, flush=True)
    return report(done, trials)


def report(done: list[dict[str, Any]], trials: int) -> int:
    if not done:
        return 1
    equal = sum(record["equal"] for record in done)
    lower, _ = wilson(equal, len(done))
    known = [record for record in done if "mttr_s" in record]
    entries, losses = (sum(record[key] for record in known) for key in ("entries", "losses_compared"))
    steps, victims = ({record[key] for record in known} for key in ("killed_at_step", "victim"))
    print(
        f"{equal} of {len(done)} equal (at least {lower:.1%} by Wilson, 95 %): {entries} entries, "
        f"{losses} losses, killed at {len(steps)} different steps, victims {sorted(victims)}"
    )
    repairs = sorted(record["mttr_s"] for record in known)
    if repairs:
        print(
            f"kill to first new step: median {statistics.median(repairs):.1f} s, max {repairs[-1]:.1f} s; "
            f"lost steps at most {max(record['lost_steps'] for record in known)}; a trial takes "
            f"{statistics.median(record['seconds'] for record in known):.1f} s (median)"
        )
    late = [seconds for seconds in repairs if seconds > MTTR_LIMIT_S]
    return 0 if equal == len(done) >= trials and not late else 1


if __name__ == "__main__":
    words = sys.argv[1:]
    count = int(words[0]) if words else 50
    where = Path(words[1]) if len(words) > 1 else ROOT / ".trainstack" / "kill_resume.jsonl"
    where.parent.mkdir(parents=True, exist_ok=True)
    sys.exit(main(count, where, int(words[2]) if len(words) > 2 else count))
