"""The golden files: one graph per supported pair, and how each of its variants differs from it."""

from pathlib import Path

from tests.components.graph import Graph
from tests.stacks.composition.compaction import compact
from tests.stacks.composition.composed import Pair, composed
from tests.stacks.composition.describe import difference, lines
from tests.stacks.composition.variants import VARIANTS

FOLDER = Path(__file__).with_name("golden")


def graph_file(pair: Pair) -> Path:
    """Where the graph of the pair's stack file is."""
    return FOLDER / f"{'-on-'.join(pair)}.txt"


def variant_file(pair: Pair, variant: str) -> Path:
    """Where the difference of a variant is."""
    return FOLDER / f"{'-on-'.join(pair)}.{variant}.txt"


def graph_text(base: Graph) -> str:
    """The content of `graph_file`."""
    return "\n".join(lines(base)) + "\n"


def variant_text(base: Graph, other: Graph) -> str:
    """The content of `variant_file`."""
    return "\n".join(compact(difference(base, other))) + "\n"


def write() -> None:
    """Write all files again, and remove those of variants that are gone."""
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for pair, variants in VARIANTS.items():
        base = composed(pair)
        graph_file(pair).write_text(graph_text(base))
        for name, change in variants.items():
            variant_file(pair, name).write_text(variant_text(base, composed(pair, change)))
