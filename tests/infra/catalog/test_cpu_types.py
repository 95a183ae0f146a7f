"""CPU machine types agree with the EC2 API as moto bundles it; every region says which zone ids it has."""

import gzip
import json
from importlib.resources import files

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from infra.catalog.aws import facts


def test_types_exist_with_this_architecture_and_no_accelerator() -> None:
    for name, family in facts.cpu_types.items():
        api = INSTANCE_TYPES[name]
        assert family.architecture in api["ProcessorInfo"]["SupportedArchitectures"], name
        assert not {"GpuInfo", "NeuronInfo", "InferenceAcceleratorInfo", "FpgaInfo"} & set(api), name


def test_types_have_as_many_processors_as_their_size_says() -> None:
    for name in (*facts.cpu_types, *facts.instance_types):
        assert facts.vcpus(name) == INSTANCE_TYPES[name]["VCpuInfo"]["DefaultVCpus"], name
    assert facts.vcpus("x9.large") is None


@pytest.mark.parametrize("region", sorted(facts.regions))
def test_types_are_offered_where_the_table_says(region: str) -> None:
    folder = files("moto") / "ec2/resources/instance_type_offerings/availability-zone-id"
    offered: dict[str, set[str]] = {}
    for row in json.loads(gzip.decompress((folder / f"{region}.json.gz").read_bytes())):
        offered.setdefault(row["InstanceType"], set()).add(row["Location"])
    assert len(facts.region(region).zone_ids) == len(facts.region(region).zones)
    for name in facts.cpu_types:
        assert set(facts.offering_zones(name, region) or ()) == offered.get(name, set()), name


def test_processors_and_memory_are_those_of_the_size() -> None:
    known = {name: found for name in facts.cpu_types if (found := facts.cpu_type(name))}
    assert "m6i.4xlarge" in known and "t3.large" not in known
    for name, machine in known.items():
        api = INSTANCE_TYPES[name]
        assert machine.vcpu == api["VCpuInfo"]["DefaultVCpus"], name
        assert machine.memory_mib == api["MemoryInfo"]["SizeInMiB"], name
