"""The plots of a summary (pure): what is drawn is in the result or the samples, nothing is judged again."""

from smoke_training.evidence import Evidence
from smoke_training.record.html import machines, ranks, wires
from smoke_training.record.html.plot import Draw, Plot, Result, made, severity

# Name, title, how it is drawn, and the checks that it shows, by how their ids begin.
PLOTS: tuple[tuple[str, str, Draw, str], ...] = (
    ("straggler", "Compute time of every rank against its peers", ranks.stragglers, "training.straggler"),
    ("decomposition", "Where the time of a training step goes", ranks.decomposition, "training."),
    ("busbw", "Bus bandwidth over message size", wires.bandwidth, "collective."),
    ("links", "Rate between nodes", wires.links, "fabric."),
    ("parity", "Loss on many ranks and on one", ranks.losses, "training.loss_parity"),
    ("storage", "Storage: durable writes, cold reads", machines.storage, "storage."),
    ("nodes", "How busy the nodes were", machines.nodes, "host."),
)


def all_of(result: Result, found: Evidence) -> list[Plot]:
    """Every plot: those of checks that failed first, those that cannot be drawn, with the reason, last."""
    ordered = sorted(PLOTS, key=lambda row: min(map(severity, _checks(result, row[3])), default=len(PLOTS)))
    plots = [made(name, title, draw, result, found) for name, title, draw, _ in ordered]
    return sorted(plots, key=lambda plot: plot.drawn is None)


def _checks(result: Result, prefix: str) -> list[Result]:
    return [check for check in result["checks"] if check["id"].startswith(prefix)]
