"""Distribution of idle quota among teams, and its return."""

from components.kubernetes.queueing.quotas import TeamArgs
from rehearsal.controlplane.api import KubernetesApi
from tests.cluster.queues.lab import Lab, flavor, queues
from tests.cluster.waiting import eventually

A100 = flavor("a100", "p4d.24xlarge", 4, usd_per_hour=32.77)  # 32 GPUs


def running(lab: Lab, names: list[str]) -> list[str]:
    """The Jobs of these that are admitted."""
    return [name for name in names if lab.admitted(name)]


def test_a_team_borrows_beyond_its_quota_and_gives_back_when_the_owner_asks(api: KubernetesApi) -> None:
    teams: list[TeamArgs] = [
        {"name": "Research", "weight": 1, "gpus": {"a100": 16}},
        {"name": "Vision", "weight": 1, "gpus": {"a100": 16}},
    ]
    with queues(api, [A100], teams) as lab:
        names = [f"vision-{index}" for index in range(4)]
        for name in names:
            lab.submit("Vision", name, gpus=8)
        lab.runs(*names)  # all 32: half of them borrowed
        lab.submit("Research", "owner", gpus=8)
        lab.runs("owner")
        assert len(running(lab, names)) == 3
        (victim,) = set(names) - set(running(lab, names))
        assert lab.evictions(victim) == {"Preempted": 1}
        assert lab.job(victim)["spec"]["suspend"] is True
        lab.finish("owner")
        lab.runs(victim)
        assert not [name for name in names if lab.job(name)["status"].get("failed")]


def test_the_shares_of_three_teams_converge_to_their_weights(api: KubernetesApi) -> None:
    weights = {"Research": 2.0, "Vision": 1.0, "Applied ML": 1.0}
    # No team has quota: all 32 GPUs are borrowed and divided by weight alone.
    teams: list[TeamArgs] = [
        {"name": name, "weight": weight, "gpus": {"a100": 0}} for name, weight in weights.items()
    ]
    with queues(api, [A100], teams) as lab:
        jobs: dict[str, list[str]] = {}
        # Each team alone could fill the pool, and the first one does.
        for team, short in zip(weights, ("r", "v", "m"), strict=True):
            jobs[team] = [f"{short}-{index}" for index in range(8)]
            for name in jobs[team]:
                lab.submit(team, name, gpus=4)
            if team == "Research":
                lab.runs(*jobs[team])

        def shares() -> dict[str, int]:
            return {team: 4 * len(running(lab, names)) for team, names in jobs.items()}

        wanted = {"Research": 16, "Vision": 8, "Applied ML": 8}
        eventually(lambda: shares() == wanted, shares)
        assert shares() == wanted
