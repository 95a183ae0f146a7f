"""Metrics of the idle GPU watcher."""

from agents.idle_gpus import decisions
from agents.idle_gpus.decisions import IdleVerdict
from agents.idle_gpus.holders import GpuPod, Holder
from agents.idle_gpus.watch import measured

NOW = 10_000.0
POD = GpuPod(
    namespace="team-vision",
    name="train-0",
    uid="1",
    owner="ada",
    gpus=8,
    interactive=False,
    began=0.0,
    started=0.0,
    last_checkpoint=NOW - 5400,
    stop_at=None,
)
HOLDER = Holder("Job", "team-vision", "train", (POD,))


def said(state: str) -> list[str]:
    judged = [(HOLDER, IdleVerdict(state, decisions.NOTHING))]
    return measured(judged, {}, NOW, blind=False, interval_s=1800).splitlines()


def test_ages_are_exported_beside_the_interval_that_a_rule_compares_them_with() -> None:
    lines = said(decisions.BUSY)
    assert 'trainstack_checkpoint_age_seconds{namespace="team-vision",holder="train"} 5400' in lines
    assert "trainstack_checkpoint_interval_seconds 1800" in lines


def test_only_pods_of_idle_holders_are_exported() -> None:
    idle = 'trainstack_idle_gpus{namespace="team-vision",pod="train-0",owner="ada"} 8'
    assert idle in said(decisions.IDLE)
    assert idle not in said(decisions.BUSY)
