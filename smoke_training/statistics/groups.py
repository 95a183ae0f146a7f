"""Finding slow nodes and links among many: screening, bisection, confirmation, mixed groups (pure).

Above 16 nodes all pairs would take too long. Groups of about sqrt(N) nodes are measured side by side, each
with its own ring traffic. A BAD group is halved until single nodes are left; a single node is measured with
a peer from a group that was GOOD, and accused only after a second, different peer confirms. If both halves
of a BAD group are GOOD, the fault lies between them: mixed groups of parts of both halves narrow it down to
a link. If all groups are GOOD, groups across them (one member of each) are screened too, because what lies
between groups is in none of them; when that accuses a whole group, its boundary is to blame. The idea is
that of NVIDIA's cluster-readiness-engine (ADR-055, ADR-056).

`locate` is a generator: it yields a `Trial` of disjoint groups, is sent one `Answer` per group, and returns
a `Location`. It holds no clock, no network: whoever drives it measures, or replays what was recorded.
"""

import itertools
import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from smoke_training.statistics.links import Answer

Group = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Groups to measure at the same time; no node is in two of them, none has fewer than two."""

    purpose: str  # screening | crossing | narrowing
    groups: tuple[Group, ...]


@dataclass(frozen=True, kw_only=True)
class Location:
    """What is certain after `rounds` trials; `open` are groups that no trial could settle."""

    nodes: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    boundaries: tuple[Group, ...]
    open: tuple[Group, ...]
    rounds: int

    @property
    def clean(self) -> bool:
        """Whether every group was certainly good."""
        return not (self.nodes or self.links or self.boundaries or self.open)


def budget(count: int) -> int:
    """Most rounds that `locate` takes: ceil(log2 N) + 3."""
    return math.ceil(math.log2(max(2, count))) + 3


def screening_groups(nodes: Sequence[int]) -> tuple[Group, ...]:
    """Neighbours in the given order (which should be the topology's), about sqrt(N) each, at least two."""
    size = max(2, round(math.sqrt(len(nodes))))
    count = max(1, len(nodes) // size)
    edges = [len(nodes) * k // count for k in range(count + 1)]
    return tuple(tuple(nodes[low:high]) for low, high in itertools.pairwise(edges))


def crossing_groups(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Groups that take one member of every given group; the last leftovers join the group before."""
    found = [
        [group[place] for group in groups if place < len(group)] for place in range(max(map(len, groups)))
    ]
    if len(found) > 1 and len(found[-1]) < 2:
        leftovers = found.pop()
        found[-1] += leftovers
    return tuple(tuple(group) for group in found if len(group) > 1)


@dataclass(frozen=True)
class _Job:
    """A suspicion to narrow: `left` alone is a BAD group; with `right` the fault lies between the two."""

    left: Group
    right: Group = ()
    diagonal: int = 0  # which of the two sets of mixed groups comes next
    peers: Group = ()  # with which a single node was BAD already
    retested: bool = False


@dataclass
class _State:
    """What the search knows so far."""

    home: Mapping[int, int]  # node -> its screening group
    crossing: bool = False
    good: set[int] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    links: set[tuple[int, int]] = field(default_factory=set)
    open: list[Group] = field(default_factory=list)
    rounds: int = 0

    def peer(self, node: int, used: set[int], before: Group) -> int | None:
        """A node that was in a GOOD group and is free now; across groups where what is between is tested."""
        free = sorted(self.good - used - self.nodes - set(before))
        if self.crossing:
            free = [peer for peer in free if self.home[peer] != self.home[node]]
        return free[0] if free else None


Search = Generator[Trial, Sequence[Answer], Location]
_Step = Generator[Trial, Sequence[Answer], list[_Job]]


def locate(nodes: Sequence[int], groups: Sequence[Group] | None = None) -> Search:
    """Search `nodes` (distinct); `groups` are those of the topology if it is known."""
    screened = tuple(groups) if groups else screening_groups(nodes)
    if sorted(node for group in screened for node in group) != sorted(set(nodes)) or len(nodes) < 2:
        raise ValueError("groups must hold every node once, and there must be at least two nodes")
    most = budget(len(nodes))
    state = _State(home={node: index for index, group in enumerate(screened) for node in group})
    jobs = yield from _screen(state, "screening", [group for group in screened if len(group) > 1])
    crossed = crossing_groups(screened)
    if not jobs and len(screened) > 1 and crossed:
        state.crossing, state.good = True, set()
        jobs = yield from _screen(state, "crossing", crossed)
    while jobs and state.rounds < most:
        jobs = yield from _narrow(state, jobs)
    state.open += [job.left + job.right for job in jobs]
    return _conclude(state, screened)


def _screen(state: _State, purpose: str, groups: Sequence[Group]) -> _Step:
    answers = yield Trial(purpose=purpose, groups=tuple(groups))
    state.rounds += 1
    jobs = []
    for group, answer in zip(groups, answers, strict=True):
        if answer is Answer.GOOD:
            state.good |= set(group)
        elif answer is Answer.BAD:
            jobs.append(_Job(left=group))
        else:
            state.open.append(group)
    return jobs


def _narrow(state: _State, jobs: Sequence[_Job]) -> _Step:
    """One trial for as many suspicions as have disjoint groups; the others wait for the next."""
    used, asked, waiting = {node for job in jobs for node in job.left + job.right}, [], []
    for job in jobs:
        groups = _question(state, job, used)
        if groups is None:
            waiting.append(job)
            continue
        used |= {node for group in groups for node in group}
        asked.append((job, groups))
    if not asked:
        state.open += [job.left + job.right for job in waiting]  # no known-good peer is left to ask
        return []
    answers = iter((yield Trial(purpose="narrowing", groups=tuple(g for _, groups in asked for g in groups))))
    state.rounds += 1
    found = list(waiting)
    for job, groups in asked:
        found += _conclusions(state, job, groups, [next(answers) for _ in groups])
    return found


def _halves(group: Group) -> tuple[Group, Group]:
    middle = (len(group) + 1) // 2
    return group[:middle], group[middle:]


def _question(state: _State, job: _Job, used: set[int]) -> tuple[Group, ...] | None:
    """The groups that decide a suspicion; None while no peer is free."""
    if job.right:
        return _diagonals(job)[job.diagonal]
    if len(job.left) == 1:
        peer = state.peer(job.left[0], used, job.peers)
        return None if peer is None else ((job.left[0], peer),)
    parts: list[Group] = []
    taken = set(used)
    for half in _halves(job.left):
        if len(half) > 1:
            parts.append(half)
            continue
        peer = state.peer(half[0], taken, job.peers)
        if peer is None:
            return None
        taken.add(peer)
        parts.append((half[0], peer))
    return tuple(parts)


def _diagonals(job: _Job) -> tuple[tuple[Group, ...], ...]:
    """Mixed groups that hold every pair across once: two trials; one for a single pair."""
    left, right = job.left, job.right
    if len(left) == len(right) == 1:
        return ((left + right,),)
    (a, b), (c, d) = _halves(left), _halves(right)
    return tuple(
        tuple(one + other for one, other in pairs if one and other)
        for pairs in (((b, c), (a, d)), ((a, c), (b, d)))
    )


def _conclusions(state: _State, job: _Job, groups: tuple[Group, ...], answers: list[Answer]) -> list[_Job]:
    if Answer.OPEN in answers:
        if not job.retested:
            return [replace(job, retested=True)]
        state.open.append(job.left + job.right)
        return []
    if job.right:
        return _between(state, job, groups, answers)
    if len(job.left) == 1:
        return _single(state, job, answers[0])
    return _split(state, job, groups, answers)


def _split(state: _State, job: _Job, groups: tuple[Group, ...], answers: list[Answer]) -> list[_Job]:
    halves = _halves(job.left)
    if all(answer is Answer.GOOD for answer in answers):
        state.good |= set(job.left)
        return [_Job(*halves)]
    found = []
    for half, group, answer in zip(halves, groups, answers, strict=True):
        if answer is Answer.GOOD:
            state.good |= set(half)
        elif len(half) > 1:
            found.append(_Job(half))
        else:
            found.append(_Job(half, peers=(group[1],)))
    return found


def _single(state: _State, job: _Job, answer: Answer) -> list[_Job]:
    """A node that was BAD with one known-good peer is accused when it is BAD with another one."""
    if answer is Answer.BAD:
        state.nodes.add(job.left[0])
    else:
        state.open.append(job.left)
    return []


def _between(state: _State, job: _Job, groups: tuple[Group, ...], answers: list[Answer]) -> list[_Job]:
    single = len(job.left) == len(job.right) == 1
    if single and answers[0] is Answer.BAD:
        state.links.add((min(job.left[0], job.right[0]), max(job.left[0], job.right[0])))
        return []
    found = [
        _Job(tuple(n for n in group if n in job.left), tuple(n for n in group if n in job.right))
        for group, answer in zip(groups, answers, strict=True)
        if answer is Answer.BAD
    ]
    if found:
        return found
    if job.diagonal + 1 < len(_diagonals(job)):
        return [replace(job, diagonal=job.diagonal + 1, retested=False)]
    state.open.append(job.left + job.right)  # BAD together, GOOD in every part: it did not come back
    return []


def _conclude(state: _State, screened: Sequence[Group]) -> Location:
    boundaries = tuple(group for group in screened if state.crossing and _cut_off(state, group))
    inside = {node for group in boundaries for node in group}
    return Location(
        nodes=tuple(sorted(state.nodes - inside)),
        links=tuple(sorted(link for link in state.links if not inside & set(link))),
        boundaries=boundaries,
        open=tuple(state.open),
        rounds=state.rounds,
    )


def _cut_off(state: _State, group: Group) -> bool:
    """Whether all members are bad with others, and several as nodes: then it is what they share."""
    ends = {end for link in state.links if not set(link) <= set(group) for end in link}
    return len(state.nodes & set(group)) >= 2 and set(group) <= state.nodes | ends
