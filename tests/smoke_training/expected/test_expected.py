"""The tables of expected figures: complete, sourced, physically possible, and never guessed from."""

import datetime
import gzip
import importlib.resources
import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog.aws import facts
from smoke_training.expected import tables
from smoke_training.expected.lookup import (
    FigureQuery,
    NoFigure,
    find_machine,
    floor_of,
    look_up,
    signature_of,
    sizes_of,
    wires,
)
from smoke_training.expected.reference import FAULT_SHARE, JUDGED_FROM, PASS_SHARE
from smoke_training.expected.tables import SourcedFigure, TableError
from smoke_training.fabric import Fabric
from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.formulae.bounds import ClusterShape, bounds, highest
from smoke_training.model import Cause
from tests.smoke_training.jobs import bundle

TABLES = tables.shipped()
MACHINE_TYPES = """
    p3dn.24xlarge p4d.24xlarge p4de.24xlarge p5.48xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge
    p6-b300.48xlarge p6e-gb200.36xlarge p6e-gb300.36xlarge p6e-gb300r.36xlarge
    g4dn.12xlarge g4dn.metal g5.12xlarge g5.48xlarge g6.48xlarge
    g6e.48xlarge

    g2-standard-96 a2-highgpu-8g a2-ultragpu-8g a3-highgpu-8g a3-megagpu-8g a3-ultragpu-8g
    a4-highgpu-8g a4x-highgpu-4g

    Standard_ND96asr_v4 Standard_ND96amsr_A100_v4 Standard_ND96isr_H100_v5
    Standard_ND96isr_H200_v5 Standard_ND128isr_GB300_v6

    BM.GPU.H100.8 BM.GPU.B300.8 BM.GPU.B4.8 BM.GPU4.8 BM.GPU.GB200.4
    hgx-a100 hgx-h100 hgx-h200 hgx-h200-4nic hgx-b200 gb200-nvl72
"""
ROWS = (*TABLES.machines, *TABLES.figures, *TABLES.floors, *TABLES.signatures)
INSIDE = [row.inside for row in TABLES.machines if row.inside]


def question(row: Any, **changes: Any) -> FigureQuery:
    known = {
        "instance_type": row.instance_type,
        "fabric": row.fabric,
        "collective": row.collective,
        "shape": ClusterShape(row.nodes, row.gpus_per_node),
        "size_bytes": row.size_bytes,
        "collnet": getattr(row, "algorithm", None) == "collnet",
        "tuned": getattr(row, "tuned", False),
    }
    return FigureQuery(**{**known, **changes})


def test_every_machine_type_is_listed_and_says_why_where_it_has_no_figure() -> None:
    assert {row.instance_type for row in TABLES.machines} == set(MACHINE_TYPES.split())
    for machine in TABLES.machines:
        figures = [
            row
            for row in TABLES.figures
            if row.instance_type == machine.instance_type and row.fabric in machine.fabrics
        ]
        assert bool(figures) != bool(machine.no_figure), machine


@pytest.mark.parametrize("row", [*ROWS, *INSIDE, *TABLES.accelerators], ids=lambda row: type(row).__name__)
def test_every_row_says_where_it_comes_from_and_when(row: Any) -> None:
    assert len(row.source.text) > 20
    assert row.source.dated in ("by source", "when read")
    assert datetime.date(2019, 1, 1) <= row.source.date <= datetime.date.today()


def test_every_source_and_every_node_inside_has_a_row() -> None:
    text = importlib.resources.files("smoke_training.expected").joinpath(tables.FILE).read_text()
    content = tomllib.loads(text)
    rows = [row for kind in content.values() if isinstance(kind, list) for row in kind]
    assert {row["inside"] for row in rows if "inside" in row} == set(content["inside"])
    named = {row["source"] for row in [*rows, *content["inside"].values()]}
    assert named | {row["gpudirect"] for row in rows if "gpudirect" in row} == set(content["sources"])


@pytest.mark.parametrize("row", TABLES.figures, ids=lambda row: f"{row.instance_type}-{row.collective}")
def test_every_figure_is_a_whole_cell(row: SourcedFigure) -> None:
    assert row.collective in COLLECTIVES
    assert row.kind in ("published", "derived", "declared")
    assert row.value > 0
    assert row.size_bytes >= 1 << 20
    assert row.stack
    machine = find_machine(TABLES, row.instance_type, row.fabric)
    assert not isinstance(machine, NoFigure)
    assert machine.gpus == row.gpus_per_node


def cell(row: SourcedFigure) -> tuple[object, ...]:
    return (row.instance_type, row.fabric, row.collective, row.nodes, row.gpus_per_node, row.size_bytes)


def test_no_stack_of_a_source_has_two_figures_of_one_cell() -> None:
    assert max(Counter((*cell(row), row.source, row.stack) for row in TABLES.figures).values()) == 1


def test_what_several_sources_measured_of_one_cell_never_reads_as_a_fault_of_the_slower() -> None:
    """From the sizes on that are judged."""
    several = dict[tuple[object, ...], list[float]]()
    for row in TABLES.figures:
        if row.size_bytes >= JUDGED_FROM:
            several.setdefault(cell(row), []).append(row.value)
    assert sum(len(values) > 1 for values in several.values()) > 10
    assert min(min(values) / max(values) for values in several.values()) > FAULT_SHARE
    for floor in TABLES.floors:
        found = look_up(TABLES, question(floor))
        if not isinstance(found, NoFigure) and found.lowest.instance_type == floor.instance_type:
            assert floor.value / found.lowest.value <= PASS_SHARE


def test_p5_has_figures_of_up_to_32_nodes_and_of_several_sources_at_two() -> None:
    row = next(row for row in TABLES.figures if row.instance_type == "p5.48xlarge" and row.value == 487.09)
    found = look_up(TABLES, question(row))
    assert not isinstance(found, NoFigure)
    assert [figure.value for figure in found.figures] == [480.0, 487.09, 487.87, 488.37]
    assert "488.37 GB/s" in found.source and "lowest: awslabs/" in found.source
    for nodes in (2, 4, 8, 16, 32):
        shape = {"shape": ClusterShape(nodes, 8), "size_bytes": 8 << 30}
        assert not isinstance(look_up(TABLES, question(row, **shape)), NoFigure)


@pytest.mark.parametrize("row", TABLES.figures, ids=lambda row: f"{row.instance_type}-{row.collective}")
def test_no_figure_outruns_the_wires_of_its_machine(row: SourcedFigure) -> None:
    machine = find_machine(TABLES, row.instance_type, row.fabric)
    assert not isinstance(machine, NoFigure)
    bound = highest(bounds(row.collective, ClusterShape(row.nodes, row.gpus_per_node), wires(machine)))
    if bound is not None and bound.complete:
        assert row.value <= bound.value * 1.001


def test_floors_stay_below_what_was_measured_and_never_answer_a_lookup() -> None:
    for floor in TABLES.floors:
        found = look_up(TABLES, question(floor))
        assert isinstance(found, NoFigure) or found.lowest.value > floor.value
        assert floor_of(TABLES, question(floor)) is not None


def test_a_floor_alone_is_no_figure() -> None:
    floor = next(row for row in TABLES.floors if row.instance_type == "p5e.48xlarge")
    found = look_up(TABLES, question(floor))
    assert isinstance(found, NoFigure)
    assert "measures p5e" in found.reason


@pytest.mark.parametrize("row", TABLES.figures, ids=lambda row: f"{row.instance_type}-{row.collective}")
def test_a_figure_answers_its_own_question_and_no_other(row: SourcedFigure) -> None:
    found = look_up(TABLES, question(row))
    assert not isinstance(found, NoFigure)
    assert row in found.figures or row.superseded
    others = (
        {"size_bytes": row.size_bytes + 1},
        {"shape": ClusterShape(row.nodes + 5, row.gpus_per_node)},
        {"shape": ClusterShape(row.nodes, row.gpus_per_node + 1)},
        {"collective": "broadcast"},
        {"instance_type": row.instance_type + "x"},
        {"fabric": Fabric.TCPX if row.fabric is not Fabric.TCPX else Fabric.RDMA},
    )
    for other in others:
        assert isinstance(look_up(TABLES, question(row, **other)), NoFigure), other


@given(
    st.sampled_from([*(row.instance_type for row in TABLES.machines), "nothing", ""]),
    st.sampled_from(Fabric),
    st.sampled_from(COLLECTIVES),
    st.builds(ClusterShape, st.integers(1, 40), st.integers(1, 8)),
    st.one_of(st.integers(1, 1 << 40), st.integers(0, 36).map(lambda power: 1 << power)),
)
def test_a_lookup_answers_with_a_row_of_the_table_or_a_reason(
    instance_type: str, fabric: Fabric, collective: str, shape: ClusterShape, size: int
) -> None:
    asked = FigureQuery(
        instance_type=instance_type, fabric=fabric, collective=collective, shape=shape, size_bytes=size
    )
    found = look_up(TABLES, asked)
    if isinstance(found, NoFigure):
        assert found.reason
    else:
        assert {(row.collective, row.nodes, row.gpus_per_node, row.size_bytes) for row in found.figures} == {
            (collective, asked.shape.nodes, asked.shape.per_node, size)
        }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"instance_type": "p5.48xlage"}, "no machine type 'p5.48xlage'; the nearest name is p5.48xlarge"),
        ({"fabric": Fabric.RDMA}, "the table has p5.48xlarge over efa, not over rdma"),
        (
            {"shape": ClusterShape(5, 8)},
            "with 5 nodes of 8 GPUs at 16 GiB; figures exist for 1 node of 8 GPUs at",
        ),
        ({"collective": "reduce_scatter"}, "no figure for reduce_scatter on p5.48xlarge over efa"),
    ],
)
def test_an_unknown_name_ends_in_a_message_that_names_it(changes: dict[str, Any], said: str) -> None:
    row = next(row for row in TABLES.figures if row.instance_type == "p5.48xlarge" and row.value == 487.09)
    found = look_up(TABLES, question(row, **changes))
    assert isinstance(found, NoFigure)
    assert said in found.reason


def test_a_measurement_near_the_figure_of_a_known_fault_reads_like_it() -> None:
    row = next(row for row in TABLES.signatures if row.value == 20.31)
    assert signature_of(TABLES, question(row), 19.0) is row
    near = signature_of(TABLES, question(row), 4.2)
    assert near is not None
    assert near.cause == "tcp_fallback"
    assert signature_of(TABLES, question(row), 77.0) is None
    for signature in TABLES.signatures:
        assert Cause(signature.cause)
        healthy = look_up(TABLES, question(signature))
        assert isinstance(healthy, NoFigure) or signature.value < PASS_SHARE * healthy.lowest.value


def test_sizes_with_figures_are_what_a_sweep_should_reach() -> None:
    assert sizes_of(TABLES, "p5.48xlarge", Fabric.EFA, "all_gather") == [1 << 30, 2 << 30, 16 << 30]
    assert sizes_of(TABLES, "p5.48xlarge", Fabric.RDMA, "all_gather") == []


def test_the_tables_read_every_name_of_a_fabric_that_plans_may_use() -> None:
    text = SOURCE + MACHINE.replace("efa", "gpudirect-tcpxo") + 'source = "a"\n'
    found = tables.parse(text)
    assert found.machines[0].fabrics == (Fabric.TCPXO,)
    with pytest.raises(TableError, match="efa, tcpx"):
        tables.parse(MACHINE.replace("efa", "myrinet") + 'source = "a"\n' + SOURCE)


# What the tables say of EC2 against two other sources: EC2's own description as moto bundles it, and the
# catalog that pools are made of. (The card rates of p6-b200 and g6e in moto do not add up to the type's own
# network performance; both rows say so.)
AWS = [row for row in TABLES.machines if row.network_gbit_s and row.fabrics[0] is Fabric.EFA]


@pytest.mark.parametrize("row", AWS, ids=lambda row: row.instance_type)
def test_network_sums_are_those_that_ec2_describes(row: tables.FabricMachine) -> None:
    type_ = _described_by_moto()[row.instance_type]
    described, (gpus,) = type_["NetworkInfo"], type_["GpuInfo"]["Gpus"]
    assert gpus["Name"].startswith(row.gpu or "unknown")
    cards = [card["BaselineBandwidthInGbps"] for card in described["NetworkCards"]]
    named = described["NetworkPerformance"]  # "4x 100 Gigabit", "3200 Gigabit"
    count, _, rate = named.removesuffix(" Gigabit").rpartition("x ")
    assert row.network_gbit_s == int(count or 1) * float(rate)
    assert row.nics == described["EfaInfo"]["MaximumEfaInterfaces"]
    assert row.nics is not None
    sums = sum(sorted(cards)[-row.nics :])
    assert sums == row.network_gbit_s or any("moto gives each" in text for text in row.disagreements)


@pytest.mark.parametrize("row", AWS, ids=lambda row: row.instance_type)
def test_machines_are_those_of_the_catalog(row: tables.FabricMachine) -> None:
    known = facts.instance_type(row.instance_type)
    assert (row.gpus, row.network_gbit_s) == (known.accelerator_count, known.network_gbps)
    assert row.nics == known.efa_interfaces


MACHINE = '\n[[machine]]\ninstance_types = ["x"]\nfabrics = ["efa"]\ngpus = 8\n'
SOURCE = '\n[sources]\na = {text = "A", date = 2026-01-01}\n'
RUN = '[[figure]]\nat = {{instance_types = ["x"], fabric = "efa", nodes = 2}}\nall_reduce = {{"{}" = 1.0}}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sources.a", "figures.toml: "),
        (SOURCE + MACHINE + 'source = "a"\n[[figure]]', "figure 1: no collective with its figures"),
        (RUN.format("1 GiB") + MACHINE, "machine 1: .*missing"),
        (RUN.format("1 GiB") + SOURCE + MACHINE + 'source = "a"', "figure 1: .*missing"),
        (RUN.replace("x", "y").format("1 GiB") + SOURCE + MACHINE + 'source = "a"', "figure 1: 'y'"),
        (RUN.format("1 GB") + SOURCE + MACHINE + 'source = "a"', "figure 1: 'GB'"),
        (RUN.format("one GiB") + SOURCE + MACHINE + 'source = "a"', "figure 1: invalid literal"),
        (MACHINE + "speed = 1", "machine 1: .*speed: unknown key"),
        (MACHINE + 'source = "b"', "machine 1: 'sources'"),
        (SOURCE + MACHINE + 'source = "b"', "machine 1: 'b'"),
        (
            SOURCE + MACHINE + 'source = "a"\nnics = "four"',
            "machine 1: .*nics: got .four.; must be null or a whole number",
        ),
        ('[[machine]]\ninstance_types = ["x"]', "machine 1: .*missing"),
    ],
)
def test_a_broken_table_names_file_and_row(text: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        tables.parse(text)


def test_the_tables_are_read_from_the_zip_that_reaches_a_cluster(tmp_path: Path) -> None:
    archive = bundle(tmp_path)
    code = "from smoke_training.expected.tables import shipped; print(len(shipped().figures), end='')"
    said = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(archive)}, cwd=tmp_path, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert int(said.stdout) == len(TABLES.figures)


def _described_by_moto() -> dict[str, Any]:
    packed = importlib.resources.files("moto.ec2").joinpath("resources/instance_types.json.gz").read_bytes()
    described: dict[str, Any] = json.loads(gzip.decompress(packed))
    return described


def test_the_references_cover_classes_from_a100_to_gb300() -> None:
    judged = {cell(row) for row in TABLES.figures if row.size_bytes >= JUDGED_FROM}
    assert len(judged) >= 240
    assert len({cell(row) for row in TABLES.figures if row.spread and row.size_bytes >= JUDGED_FROM}) >= 150
    assert all(row.spread is None or 0 < row.spread < 0.1 for row in TABLES.figures)
