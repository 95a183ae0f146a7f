"""References of collectives, in order of precedence."""

from typing import Any

import pytest

from smoke_training.expected.lookup import NoFigure, find_machine, wires
from smoke_training.expected.reference import (
    DERIVED_FROM,
    EFFICIENCY,
    EFFICIENT_FABRICS,
    FAULT_SHARE,
    PASS_SHARE,
    TCP_EFFICIENCY,
    CollectiveReference,
    RunSetting,
    reference,
    setting_of,
)
from smoke_training.expected.tables import shipped
from smoke_training.formulae.bounds import ClusterShape, bounds, lowest
from tests.smoke_training.samples import plan

GIB = 1 << 30
SIZES = (1024, 1 << 20, 256 << 20, GIB, 4 * GIB, 16 * GIB)
LAB: dict[str, Any] = {"gpus_per_node": 0, "instance_type": "namespace", "fabric": "tcp", "rails": ["eth0"]}


def on_nccl(nodes: int = 2, per_node: int = 8) -> RunSetting:
    return RunSetting(ranks=nodes * per_node, shape=ClusterShape(nodes, per_node), backend="nccl")


def on_gloo(nodes: int = 4, per_node: int = 1) -> RunSetting:
    return RunSetting(ranks=nodes * per_node, shape=ClusterShape(nodes, per_node), backend="gloo")


def held(
    setting: RunSetting, name: str = "all_reduce", sizes: tuple[int, ...] = SIZES, **changes: Any
) -> CollectiveReference:
    return reference(shipped(), plan(**changes), setting, (name, sizes), {})


def test_a_published_figure_is_firm_and_names_its_source() -> None:
    found = held(on_nccl(), instance_type="p5.48xlarge")
    assert (found.size, found.expected.value, found.expected.kind) == (16 * GIB, 487.48, "published")
    assert found.expected.floor == pytest.approx(PASS_SHARE * 480.0)
    assert found.fail_below == pytest.approx(EFFICIENCY * 367.61)  # a ring may be in use on two nodes
    assert "480 to 488.37" in found.expected.source


@pytest.mark.parametrize(
    ("algorithm", "line"), [("ring", EFFICIENCY * 367.61), ("nvls_tree", FAULT_SHARE * 480)]
)
def test_what_a_ring_makes_on_two_nodes_is_a_fault_only_of_another_algorithm(
    algorithm: str, line: float
) -> None:
    chosen = {SIZES[-1]: algorithm}
    found = reference(shipped(), plan(instance_type="p5.48xlarge"), on_nccl(), ("all_reduce", SIZES), chosen)
    assert found.fail_below == pytest.approx(line)


def test_a_superseded_figure_sets_no_limit() -> None:
    found = held(on_nccl(), instance_type="p5.48xlarge", sizes=(GIB,))
    assert found.expected.floor == pytest.approx(PASS_SHARE * 435.14)
    assert "313" not in found.expected.source


@pytest.mark.parametrize(("nodes", "figure"), [(4, 356.99), (8, 355.36), (16, 356.27), (32, 321.1)])
def test_larger_clusters_are_held_against_figures_of_their_own_size(nodes: int, figure: float) -> None:
    found = held(on_nccl(nodes), instance_type="p5.48xlarge", sizes=(1024, GIB, 8 * GIB, 16 * GIB))
    assert (found.size, found.expected.kind) == (8 * GIB, "published")
    assert (found.expected.floor, found.fail_below) == pytest.approx((0.9 * figure, 2 / 3 * figure))


def test_the_largest_size_with_a_figure_is_judged() -> None:
    assert held(on_nccl(), instance_type="p4d.24xlarge").size == GIB
    assert held(on_nccl(), instance_type="p4d.24xlarge", sizes=SIZES[:3]).size == 256 << 20
    small = held(on_nccl(), instance_type="p4d.24xlarge", sizes=(1024, 64 << 20))
    assert small.expected.kind == "unknown"
    assert "from 268435456" in str(small.expected.reason)


def test_the_plans_own_figure_goes_first() -> None:
    own = {"value": 99.0, "nodes": 2, "size_bytes": GIB, "source": "a contract", "kind": "declared"}
    found = held(on_nccl(), instance_type="p4d.24xlarge", expected_busbw_gb_s=own)
    assert (found.expected.value, found.expected.source, found.size) == (99.0, "a contract", GIB)
    assert held(on_nccl(), name="all_gather", expected_busbw_gb_s=own).expected.value != 99.0


@pytest.mark.parametrize("fabric", ["tcp", "infiniband", "rdma"])
def test_a_fabric_without_figures_is_unknown_by_name_and_fails_nothing(fabric: str) -> None:
    found = held(on_nccl(), instance_type="p5.48xlarge", fabric=fabric)
    assert (found.expected.value, found.expected.floor, found.expected.kind) == (None, None, "unknown")
    assert fabric in str(found.expected.reason)
    assert found.fail_below is None


def test_no_figure_but_known_wires_is_provisional_and_only_far_below_is_a_fault() -> None:
    found = held(on_nccl(6), instance_type="p5.48xlarge")
    assert found.expected.kind == "derived"
    assert found.expected.value == pytest.approx(EFFICIENCY * 367.61)
    assert found.fail_below == pytest.approx(FAULT_SHARE * EFFICIENCY * 367.61)
    assert str(found.expected.reason).startswith("provisional: ")
    assert found.ceiling == pytest.approx(400 / 8 * 47 / 5)


def test_gb300_over_roce_has_the_figures_of_its_own_type_and_efa_has_none() -> None:
    for fabric, value in (("rdma", 376.01), ("nvlink", 923.32)):
        found = held(on_nccl(8, 4), instance_type="p6e-gb300r.36xlarge", fabric=fabric)
        assert found.expected.value == value
        unknown = held(
            on_nccl(8, 4), instance_type="p6e-gb300.36xlarge", fabric=fabric.replace("rdma", "efa")
        )
        assert (unknown.expected.kind, unknown.fail_below) == ("unknown", None)


@pytest.mark.parametrize(
    ("tuned", "floor", "fault"), [(True, 391.37, 391.37), (False, 320.7, 320.7), (None, 391.37, 320.7)]
)
def test_a_run_with_more_channels_is_held_against_figures_with_more_channels(
    tuned: bool | None, floor: float, fault: float
) -> None:
    setting = RunSetting(ranks=64, shape=ClusterShape(8, 8), backend="nccl", tuned=tuned)
    found = held(setting, sizes=(8 * GIB,), instance_type="hgx-h100", fabric="infiniband")
    assert found.expected.floor == pytest.approx(PASS_SHARE * floor)
    assert found.fail_below == pytest.approx(FAULT_SHARE * fault)
    assert ("default settings" in found.expected.source, "NCCL_MIN_CTAS" in found.expected.source) == {
        True: (False, True), False: (True, False), None: (True, True)
    }[tuned]  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "fabric", "shape"),
    [("hgx-h100", "infiniband", (2, 1)), ("p5.48xlarge", "efa", (2, 4)), ("a3-megagpu-8g", "tcpxo", (2, 2)),
     ("hgx-h100", "infiniband", (1, 7)), ("unknown", "efa", (2, 1))],
)  # fmt: skip
def test_some_of_a_nodes_gpus_prove_no_fault_of_the_whole_nodes_network(
    machine: str, fabric: str, shape: tuple[int, int]
) -> None:
    wide: dict[str, Any] = {} if machine != "unknown" else {"network_gbit_s": 3200.0}
    for name in ("all_reduce", "all_to_all"):
        found = held(on_nccl(*shape), name=name, instance_type=machine, fabric=fabric, **wide)
        assert (found.expected.kind, found.fail_below, found.bounds) == ("unknown", None, ())


def test_a_sweep_too_small_for_so_many_ranks_has_no_provisional_figure() -> None:
    found = held(on_nccl(20), instance_type="p5.48xlarge", sizes=(1024, 8 * GIB))
    assert found.expected.kind == "unknown"
    assert "160 ranks" in str(found.expected.reason)
    assert held(on_nccl(20), instance_type="p5.48xlarge").expected.kind == "derived"


def test_a_log_that_names_the_algorithm_chooses_the_bound() -> None:
    by_tree = reference(
        shipped(), plan(instance_type="p5.48xlarge"), on_nccl(6), ("all_reduce", SIZES), {SIZES[-1]: "tree"}
    )
    assert by_tree.expected.value == pytest.approx(EFFICIENCY * 400 / 8 * 47 / 5)


def test_a_lost_nvls_does_not_lower_what_passes_and_a_fault_is_one_by_any_algorithm() -> None:
    """Healthy pairs of 8x H200 make 467 to 486, of 8x B200 683 to 696; the ring's bound let 265 pass."""
    for machine, floor in (("p5en.48xlarge", 360), ("p6-b200.48xlarge", 530)):
        for chosen in ({}, {SIZES[-1]: "ring"}):
            found = reference(
                shipped(), plan(instance_type=machine), on_nccl(), ("all_reduce", SIZES), chosen
            )
            assert found.expected.kind == "derived"
            assert (found.expected.floor or 0) > floor
            assert (found.fail_below or 0) < 220


@pytest.mark.parametrize("instance_type", ["g5.48xlarge", "g4dn.metal", "p3dn.24xlarge"])
def test_machines_whose_inside_is_unknown_are_never_judged(instance_type: str) -> None:
    found = held(on_nccl(), instance_type=instance_type)
    assert found.expected.kind == "unknown"
    assert found.expected.reason


def test_sockets_on_accelerators_have_a_bound_and_no_expectation() -> None:
    found = held(on_nccl(), instance_type="a2-highgpu-8g", fabric="tcp")
    assert (found.expected.kind, found.fail_below) == ("unknown", None)
    assert "12.5 GB/s" in str(found.expected.reason)


def test_a_declared_network_replaces_the_tables() -> None:
    found = held(on_nccl(6), instance_type="p5.48xlarge", network_gbit_s=800.0)
    assert found.expected.value == pytest.approx(EFFICIENCY * 100.0)


def test_no_published_figure_of_so_many_bytes_a_rank_lies_below_the_provisional_efficiency() -> None:
    shares = []
    for row in shipped().figures:
        machine = find_machine(shipped(), row.instance_type, row.fabric)
        assert not isinstance(machine, NoFigure)
        bound = lowest(bounds(row.collective, ClusterShape(row.nodes, row.gpus_per_node), wires(machine)))
        large = row.size_bytes >= DERIVED_FROM * row.nodes * row.gpus_per_node
        if bound and bound.complete and large and row.fabric in EFFICIENT_FABRICS:
            shares.append(row.value / bound.value)
    assert len(shares) > 30
    assert EFFICIENCY <= min(shares) < EFFICIENCY + 0.1


def test_gloo_is_held_against_the_declared_rate_of_one_rail() -> None:
    found = held(on_gloo(), sizes=(1024, 4 << 20), **LAB, rail_gbit_s=0.5)
    assert (found.expected.kind, found.size, found.declared) == ("declared", 4 << 20, True)
    assert found.expected.value == pytest.approx(TCP_EFFICIENCY * 0.0625)
    assert "0.5 Gb/s" in found.expected.source


@pytest.mark.parametrize(
    ("name", "bound"), [("all_gather", 0.0625), ("all_to_all", 0.0625), ("reduce_scatter", 0.03125)]
)
def test_what_gloo_does_not_fill_is_reported_with_its_bound_only(name: str, bound: float) -> None:
    found = held(on_gloo(), name=name, **LAB, rail_gbit_s=0.5)
    assert found.expected.kind == "unknown"
    assert "a wire" in str(found.expected.reason)
    assert found.ceiling == pytest.approx(bound)


@pytest.mark.parametrize(
    ("setting", "changes", "reason"),
    [
        (on_gloo(1, 4), {**LAB, "rail_gbit_s": 1.0}, "exchange data in its memory"),
        (on_gloo(), LAB, "declares no rate"),
        (on_gloo(), {**LAB, "rails": ["a", "b"], "network_gbit_s": 2.0}, "declares no rate"),
        (on_gloo(), {"instance_type": "p5.48xlarge", "rail_gbit_s": 100.0}, "declares no rate"),
        (RunSetting(ranks=3, shape=None, backend="gloo"), LAB, "different numbers of ranks"),
    ],
)
def test_gloo_without_a_wire_of_its_own_is_unknown(
    setting: RunSetting, changes: dict[str, Any], reason: str
) -> None:
    found = held(setting, **changes)
    assert found.expected.kind == "unknown"
    assert reason in str(found.expected.reason)


def test_a_rate_that_a_cpu_may_not_fill_proves_no_fault() -> None:
    found = held(on_gloo(), **LAB, rail_gbit_s=25.0)
    assert found.expected.kind == "derived"
    assert found.fail_below is None


def test_the_shape_is_that_of_the_ranks_that_joined() -> None:
    assert setting_of([0, 0, 1, 1], "gloo").shape == ClusterShape(2, 2)
    assert setting_of([0, 1, 1], "gloo").shape is None
