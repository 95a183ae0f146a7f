"""The plots of a summary in the order of reading (pure).

Everything that is drawn is in the result or in the samples: nothing is judged again here.
"""

from smoke_training.evidence import Evidence
from smoke_training.record.html import machines, ranks, wires
from smoke_training.record.html.plot import Draw, Plot, Result, made

PLOTS: tuple[tuple[str, str, Draw], ...] = (
    ("busbw", wires.BANDWIDTH, wires.bandwidth),
    ("decomposition", ranks.DECOMPOSITION, ranks.decomposition),
    ("straggler", ranks.STRAGGLERS, ranks.stragglers),
    ("links", wires.LINKS, wires.links),
    ("parity", ranks.LOSSES, ranks.losses),
    ("storage", machines.STORAGE, machines.storage),
    ("nodes", machines.NODES, machines.nodes),
)


def all_of(result: Result, found: Evidence) -> list[Plot]:
    """Every plot, drawn or with the reason why it is not."""
    return [made(name, title, draw, result, found) for name, title, draw in PLOTS]
