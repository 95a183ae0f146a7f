"""Judge of collectives' results: exact contents, and the rank that corrupted them (pure)."""

from collections.abc import Sequence

from smoke_training.evidence import Evidence, UndeliveredError
from smoke_training.evidence.fabric import Payload, Wrong
from smoke_training.evidence.world import World
from smoke_training.formulae.bandwidth import ALL_REDUCE, COLLECTIVES, REDUCE_SCATTER
from smoke_training.judges.common import host_of
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

SUMS = (ALL_REDUCE, REDUCE_SCATTER)  # where a wrong element does not identify its rank


def payload(_plan: Plan, found: Evidence) -> Check:
    """Exact rank-coded contents of every collective at every size."""
    parts, cluster = {item.name: item for item in found.all_of(Payload)}, found.need(World)
    if not parts:
        raise UndeliveredError("payload")
    needed = COLLECTIVES if len(cluster.ranks) > 1 else (ALL_REDUCE,)
    missing = [name for name in needed if name not in parts]
    wrong = [(name, item) for name, part in parts.items() for item in part.wrong]
    elements = sum(part.elements for part in parts.values())
    count = sum(item.elements for _, item in wrong)
    status = Verdict.FAIL if wrong else Verdict.ERROR if missing else Verdict.PASS
    skipped = [f"{name} not checked: {part.skipped}" for name, part in parts.items() if part.skipped]
    culprits = tuple(_corrupters(wrong, cluster))
    largest = max((size for part in parts.values() for size in part.sizes), default=0)
    exact = f"{elements} exact elements in messages of up to {largest} bytes"
    message = [f"{count} of {exact} are wrong{_where(wrong, culprits)}"]
    if missing:
        message.append(f"no contents were delivered for {', '.join(missing)}")
    return Check(
        status=status,
        measured=Measured.count(count, "wrong elements", elements),
        expected=Expected.exactly(0.0, "rank-coded 48-bit words and their int64 sums"),
        culprits=culprits,
        message="; ".join(message + skipped),
        next_action="Take the accused rank's node out and test its memory and NIC." if wrong else None,
    )


def _where(wrong: Sequence[tuple[str, Wrong]], accused: Sequence[Culprit]) -> str:
    """Describe places, and the ranks equally likely to have corrupted the sum if none is accused."""
    if not wrong:
        return ""
    places = list(dict.fromkeys(f"{name} of {item.size} bytes" for name, item in wrong))
    text = f" in {', '.join(places[:6])}"
    several = sorted({rank for _, item in wrong for rank in item.accused})
    if accused or not several:
        return text
    return f"{text}; the contribution of one of ranks {', '.join(map(str, several))} was changed"


def _corrupters(wrong: Sequence[tuple[str, Wrong]], cluster: World) -> Sequence[Culprit]:
    """Return every rank that is accused alone, or whose own part of a gathered array is wrong.

    Where one receiver alone has errors, and of several senders, it is the receiver; a part of a
    reduce-scatter has one receiver only and proves nothing. Sums that fit several ranks accuse none.
    """
    accused = {
        rank for name, item in wrong for rank in item.accused if name not in SUMS or len(item.accused) == 1
    }
    receivers = {item.rank for _, item in wrong}
    spread = any(name != REDUCE_SCATTER for name, _ in wrong)
    if spread and len(receivers) == 1 and len(cluster.ranks) > 2 and len(accused) != 1:
        accused = receivers
    return [_corrupter(rank, wrong, cluster) for rank in sorted(accused)]


def _corrupter(rank: int, wrong: Sequence[tuple[str, Wrong]], cluster: World) -> Culprit:
    items = [(name, item) for name, item in wrong if rank in item.accused or rank == item.rank]
    chunks = sorted({chunk for _, item in items for chunk in item.chunks})
    sizes = sorted({item.size for _, item in items})
    names = sorted({name for name, _ in items})
    where = f"{', '.join(names)} of {', '.join(map(str, sizes))} bytes, chunk {', '.join(map(str, chunks))}"
    text = f"its words are wrong in {where}"
    return Culprit("rank", str(rank), Cause.CORRUPTION, (text,), node=host_of(rank, cluster))
