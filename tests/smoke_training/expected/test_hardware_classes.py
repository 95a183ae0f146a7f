"""Figures of machine types by their hardware class."""

import dataclasses

import pytest

from smoke_training.expected import tables
from smoke_training.expected.lookup import (
    FigureQuery,
    NoFigure,
    achievable,
    look_up,
    signature_of,
)
from smoke_training.fabric import Fabric
from smoke_training.formulae.bounds import ClusterShape

TABLES = tables.shipped()


def asked(machine: str, fabric: Fabric, nodes: int, size: int, collective: str = "all_reduce") -> FigureQuery:
    shape = ClusterShape(nodes, 8)
    return FigureQuery(
        instance_type=machine, fabric=fabric, collective=collective, shape=shape, size_bytes=size << 30
    )


def test_a_type_without_rows_has_those_of_its_hardware_class_and_says_so() -> None:
    for machine, fabric in (
        ("Standard_ND96isr_H100_v5", Fabric.INFINIBAND),
        ("Standard_ND96isr_H200_v5", Fabric.INFINIBAND),
        ("a3-ultragpu-8g", Fabric.RDMA),
        ("BM.GPU.H100.8", Fabric.RDMA),
    ):
        found = look_up(TABLES, asked(machine, fabric, 2, 8))
        assert not isinstance(found, NoFigure), machine
        assert found.lowest.value > 460
        assert "hgx-h" in found.source or found.lowest.instance_type == machine
    acs = signature_of(TABLES, asked("a3-ultragpu-8g", Fabric.RDMA, 2, 1), 215.0)
    assert acs is not None and "ACS" in acs.meaning


def test_in_one_node_no_fabric_takes_part() -> None:
    rows = [look_up(TABLES, asked("hgx-h100", fabric, 1, 16)) for fabric in (Fabric.INFINIBAND, Fabric.RDMA)]
    assert rows[0] == rows[1]
    assert not isinstance(rows[0], NoFigure)


@pytest.mark.parametrize(
    "device", ["NVIDIA H200 NVL", "NVIDIA H100 NVL", "NVIDIA H100 PCIe", "NVIDIA H200 MIG 1g.18gb"]
)
def test_a_device_of_another_class_has_no_rate_of_the_module(device: str) -> None:
    assert achievable(TABLES, device, "bfloat16") is None
    assert achievable(TABLES, "NVIDIA H200", "bfloat16") is not None


def test_a_figure_with_sharp_answers_only_where_switches_reduced() -> None:
    """NVIDIA says that without it one ring peaks at 400 (NVIDIA/nccl-tests#309); Azure's 450 are with it."""
    plain = asked("Standard_ND96isr_H100_v5", Fabric.INFINIBAND, 8, 16)
    assert isinstance(look_up(TABLES, plain), NoFigure)
    with_sharp = look_up(TABLES, dataclasses.replace(plain, collnet=True))
    assert not isinstance(with_sharp, NoFigure) and with_sharp.lowest.value == 450.0
    ring = look_up(TABLES, asked("Standard_ND96isr_H100_v5", Fabric.INFINIBAND, 8, 8))
    assert not isinstance(ring, NoFigure) and ring.lowest.value < 400
