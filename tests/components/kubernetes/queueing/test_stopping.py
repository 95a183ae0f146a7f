"""A manager of clusters refuses more than other stacks."""

from agents.clusters.dispatch import LOST_TAINT
from agents.clusters.leaving import LEAVING_TAINT
from components.kubernetes.queueing.stopping import UNSUPPORTED, policies


def refusals(*, sends: bool) -> list[tuple[str, str]]:
    (found,) = (one for one in policies("true", sends=sends) if one.name == UNSUPPORTED)
    return list(found.refusals)


def test_only_a_manager_refuses_jobs_that_tolerate_the_taints_of_its_clusters() -> None:
    ours = [one for one in refusals(sends=True) if "tolerations" in one[0]]
    assert len(ours) == 1
    ((expression, message),) = ours
    assert all(taint["key"] in message for taint in (LOST_TAINT, LEAVING_TAINT))
    assert "variables.before" in expression, "Kueue stops a job from before the policy"
    assert not [one for one in refusals(sends=False) if "tolerations" in one[0]]
