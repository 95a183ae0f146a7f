"""The tables of Google Cloud are read whole, and agree with sources that their rows were not written from.

`fixtures/skypilot_gcp.csv`: rows of catalogs/v8/gcp/vms.csv of skypilot-org/skypilot-catalog@8427bbff988a, a
pull of Google's price list at another time, in sizes that the tables derive; processors and memory in the
tables are from elsewhere.
`fixtures/gcloud_machine_types.csv`: regions per machine type in tools/machinetyperegion.csv of
Cyclenerd/google-cloud-pricing-cost-calculator@dac31281f2a4 (`gcloud compute machine-types list`); most offers
in the tables are from SkyPilot.
"""

import csv
import datetime
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from infra.catalog import tables
from infra.catalog.aws import facts as aws
from infra.catalog.durations import durations
from infra.catalog.errors import UnknownFactError
from infra.catalog.fact import Fact
from infra.catalog.gcp import facts
from infra.catalog.gcp.catalog import GcpCatalog
from infra.catalog.gcp.model import Way
from infra.catalog.tables import CatalogError

DATA = Path(tables.__file__).parent / "gcp/tables"
FIXTURES = Path(__file__).parent / "fixtures"


def rows_of(name: str, delimiter: str = ",") -> list[dict[str, str]]:
    with (FIXTURES / name).open() as file:
        return list(csv.DictReader(file, delimiter=delimiter))


SKYPILOT = rows_of("skypilot_gcp.csv")
LISTED = rows_of("gcloud_machine_types.csv", ";")


def every_row() -> dict[str, Iterable[Fact]]:
    return {
        "accelerators": facts.accelerators.values(),
        "machine_types": facts.machine_types.values(),
        "machine_types.networks": facts.gpu_networks.values(),
        "cpu_families": facts.cpu_types.values(),
        "prices.vm": facts.vm_prices.values(),
        "prices.gpu": facts.gpu_prices.values(),
        "service_prices": facts.service_prices.values(),
        "regions": facts.regions.values(),
        "gke.versions": facts.gke_versions.values(),
        "gke.minors": facts.gke.minors.values(),
        "gke.channels": facts.gke.channels.values(),
        "purchases": facts.sales.values(),
        "quotas": facts.quotas.values(),
        "storage.filestore": facts.filestore_tiers.values(),
        "storage.lustre": facts.lustre_tiers.values(),
        "limits": facts.limits.values(),
        "durations": [row for rows in facts.durations.values() for row in rows],
    }


@pytest.mark.parametrize("table", list(every_row()))
def test_every_row_says_where_it_comes_from_and_when(table: str) -> None:
    rows = list(every_row()[table])
    assert rows
    for row in rows:
        assert len(row.source) > 8, row
        assert datetime.date(2024, 1, 1) <= row.date <= datetime.date.today(), row


def test_no_source_is_listed_without_a_row() -> None:
    for path in DATA.glob("*.toml"):
        content = tomllib.loads(path.read_text())
        used = {row["source"] for rows in content.values() if isinstance(rows, list) for row in rows}
        assert used == set(content["sources"]), path.name


def test_every_type_with_gpus_is_sold_in_some_way() -> None:
    assert set(facts.sales) == set(facts.machine_types)


def test_types_are_sold_as_other_lists_of_google_cloud_say() -> None:
    # dstackai/gpuhunt@35841515 src/gpuhunt/providers/gcp.py (`filter`): not on demand.
    absent = ("a4x-", "a4-", "a3-ultragpu-", "a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g")
    for name in facts.machine_types:
        assert facts.sold(name, "on_demand") is not name.startswith(absent), name
    # A SKU of a market exists only where some machine with the GPU is sold so.
    ways: dict[str, Way] = {"spot": "spot", "flex_start": "flex_start", "calendar": "block"}
    for (gpu, _, market), row in facts.gpu_prices.items():
        names = [name for name, one in facts.machine_types.items() if one.accelerator == gpu]
        assert market == "on_demand" or any(facts.sold(name, ways[market]) for name in names), row


def test_local_disks_agree_with_other_lists() -> None:
    # dstackai/gpuhunt@35841515 src/gpuhunt/providers/gcp.py (`local_ssd_sizes_gib`).
    sizes = {"a3-megagpu-8g": 16, "a3-highgpu-8g": 16}
    sizes |= {f"a2-ultragpu-{count}g": count for count in (1, 2, 4, 8)}
    assert {name: facts.machine_type(name).local_ssds for name in sizes} == sizes


def test_import_brings_no_engine_and_reads_no_table() -> None:
    code = (
        "import sys, infra.catalog.gcp as c; "
        "heavy = {'pulumi', 'pulumi_gcp', 'boto3', 'grpc'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "assert not {k for k in vars(c.facts) if k != '_folder'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=DATA.parents[3])


def test_a_machine_has_an_accelerator_that_exists(tmp_path: Path) -> None:
    for name in ("accelerators.toml", "machine_types.toml"):
        text = (DATA / name).read_text()
        (tmp_path / name).write_text(text.replace('accelerator = "nvidia-l4"', 'accelerator = "nvidia-l5"'))
    with pytest.raises(CatalogError, match=r"g2-standard-4: .*'nvidia-l5'"):
        _ = GcpCatalog(tmp_path).machine_types


@pytest.mark.parametrize(
    "row", SKYPILOT, ids=lambda row: f"{row['InstanceType']} in {row['AvailabilityZone']}"
)
def test_a_machine_is_what_another_pull_of_the_price_list_says(row: dict[str, str]) -> None:
    machine = facts.machine_type(row["InstanceType"])
    assert (machine.vcpu, machine.memory_gib) == (int(row["vCPUs"]), int(row["MemoryGiB"]))
    region = row["AvailabilityZone"].rpartition("-")[0]
    assert row["AvailabilityZone"] in (facts.offering_zones(machine.name, region) or ())


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row["name"])
def test_a_machine_is_offered_where_gcloud_lists_it(row: dict[str, str]) -> None:
    name = row["name"]
    # Where SkyPilot's crawl knows more: no other source has small A3 machines in Milan.
    beyond = {"europe-west8"} if name == "a3-highgpu-1g" else set()
    assert {region for known, region in facts.offers if known == name} == {*row["regions"].split(), *beyond}


def test_every_size_with_gpus_has_offers_in_zones_of_known_regions() -> None:
    assert {machine for machine, _ in facts.offers} == set(facts.machine_types)
    for (_, region), zones in facts.offers.items():
        assert set(zones) <= set(facts.region(region).zones)


def test_a_region_without_named_zones_may_offer_a_type_in_each() -> None:
    assert facts.offering_zones("a4x-highgpu-4g", "us-central1") == facts.region("us-central1").zones
    assert facts.offering_zones("a3-ultragpu-8g", "us-central1") == ("us-central1-b",)
    assert facts.offering_zones("a3-ultragpu-8g", "us-west4") == ()
    assert facts.offering_zones("p5.48xlarge", "us-central1") is None
    assert facts.offering_zones("e2-standard-4", "us-east5") == facts.region("us-east5").zones
    with pytest.raises(UnknownFactError, match="us-central1"):
        facts.offering_zones("e2-standard-4", "us-centrl1")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("nvidia-l4", "l4"),
        ("nvidia-tesla-a100", "a100-40"),
        ("nvidia-a100-80gb", "a100-80"),
        ("nvidia-h100-80gb", "h100"),
        ("nvidia-h100-mega-80gb", "h100"),
        ("nvidia-h200-141gb", "h200"),
        ("nvidia-b200", "b200"),
    ],
)
def test_a_gpu_is_the_same_in_both_clouds(name: str, key: str) -> None:
    """Memory differs by what an API takes off: AWS reports 22 GiB of the 24 of an L4."""
    here, there = facts.accelerators[name], aws.accelerators[key]
    assert here.dense_bf16_tflops == there.dense_bf16_tflops
    assert here.memory_gib is not None
    assert 0 <= here.memory_gib - there.memory_gib <= 2


def test_partitions_are_of_the_memory_of_their_gpu() -> None:
    for gpu in facts.accelerators.values():
        for size in gpu.mig:
            slices, gib = size.removesuffix("gb").split("g.")
            assert gpu.memory_gib and int(gib) <= gpu.memory_gib and 1 <= int(slices) <= 7, (gpu.name, size)
        assert not gpu.mig or gpu.mig[f"7g.{gpu.memory_gib}gb"] == 1


def test_partitions_are_as_many_as_cores_and_memory_allow() -> None:
    """Seven slices of cores, and the memory that its name says, bound a size (NVIDIA MIG user guide)."""
    for gpu in facts.accelerators.values():
        for size, count in gpu.mig.items():
            slices, gib = map(int, re.findall(r"\d+", size))
            assert gpu.memory_gib and count == min(7 // slices, round(gpu.memory_gib / gib)), (gpu.name, size)


def test_networks_of_gpus_are_those_of_the_blueprints() -> None:
    """NICs per machine, as Google's page on GPU bandwidth counts them; A4X has four GPUs and four NICs."""
    assert {name: row.total for name, row in facts.gpu_networks.items()} == {
        "a3-highgpu-8g": 4,
        "a3-megagpu-8g": 8,
        "a3-ultragpu-8g": 9,
        "a4-highgpu-8g": 9,
        "a4x-highgpu-4g": 5,
        "a4x-maxgpu-4g-metal": 0,
    }
    for name, row in facts.gpu_networks.items():
        fabric = facts.machine_types[name].fabric
        assert row.mtu == (8896 if fabric == "rdma" else 8244)
        assert row.by_gke is (fabric == "rdma")
    assert set(facts.gpu_networks) == {row.name for row in facts.machine_types.values() if row.fabric}


def test_a_machine_sends_no_more_than_all_of_its_adapters() -> None:
    """The fabric's adapters and those of the host share the figure of the whole machine."""
    for row in facts.machine_types.values():
        assert bool(row.nics and row.nic_gbps) is bool(row.fabric), row.name
        if row.nics and row.nic_gbps and row.network_gbps:
            assert 200 <= row.network_gbps - row.nics * row.nic_gbps <= 400, row.name


def test_boot_disks_are_such_as_the_series_take() -> None:
    assert facts.boot_disk("n2-standard-8") == facts.boot_disk("g2-standard-4") == "pd-balanced"
    assert facts.boot_disk("c4-standard-8") == facts.boot_disk("a4-highgpu-8g") == "hyperdisk-balanced"
    assert facts.boot_disk("a2-highgpu-1g") is facts.boot_disk("x9-standard-8") is None


def test_only_old_series_and_g4_have_a_choice_of_local_disks() -> None:
    for row in facts.machine_types.values():
        chosen = (
            row.name.startswith(("g2-", "g4-", "a2-highgpu", "a2-megagpu")) and row.name != "g4-standard-6"
        )
        assert bool(row.local_ssd_choices) is chosen, row
        assert not (row.local_ssds and row.local_ssd_choices)


def test_a_processor_type_has_the_memory_of_its_family() -> None:
    machine = facts.cpu_type("n4-highmem-16")
    assert machine and (machine.vcpu, machine.memory_gib) == (16, 128)
    small = facts.cpu_type("c4-standard-2")
    assert small and small.memory_gib == 7  # 3.75 GiB each, rounded down as the API does
    assert facts.cpu_type("a2-highgpu-1g") is None
    assert (facts.vcpus("e2-standard-8"), facts.vcpus("g2-standard-48"), facts.vcpus("x1-2")) == (8, 48, None)


def test_versions_begin_with_that_of_new_clusters_and_are_of_known_minor_versions() -> None:
    assert next(iter(facts.gke_versions)).startswith("1.35.")
    assert {".".join(name.split(".")[:2]) for name in facts.gke_versions} == set(facts.gke.minors)


@pytest.mark.parametrize(
    ("version", "day", "support"),
    [
        ("1.35", "2027-04-10", "standard"),
        ("1.35", "2027-04-11", "extended"),
        ("1.33", "2026-11-25", "extended"),
    ],
)
def test_support_of_a_version_on_a_day(version: str, day: str, support: str) -> None:
    assert facts.gke.support(version, datetime.date.fromisoformat(day)) == support
    with pytest.raises(UnknownFactError, match=r"1\.35"):
        facts.gke.support("1.53", datetime.date.fromisoformat(day))


def test_durations_of_both_clouds_are_known() -> None:
    known = durations()
    assert "aws:ec2/vpc:Vpc" in known and known["gcp:container/cluster:Cluster"][0].seconds_min == 213


@pytest.mark.parametrize(("gib", "offered"), [(1024, True), (1280, True), (1100, False), (10240, True)])
def test_a_share_has_a_size_of_its_tier(gib: int, offered: bool) -> None:
    assert (facts.filestore_tiers["ZONAL"].problem(gib) is None) is offered


@pytest.mark.parametrize(
    ("gib", "offered"), [(99, False), (100, True), (1025, True), (10240, True), (10241, False)]
)
def test_regional_shares_begin_small(gib: int, offered: bool) -> None:
    assert (facts.filestore_tiers["REGIONAL"].problem(gib) is None) is offered


@pytest.mark.parametrize(
    ("gib", "offered"),
    [
        (9000, True),
        (1530000, True),
        (1539000, False),  # above the threshold the step is eight times as large
        (1584000, True),
        (10008000, True),
        (10017000, False),
        (9001, False),
        (0, False),
    ],
)
def test_a_file_system_has_a_size_of_its_throughput(gib: int, offered: bool) -> None:
    problem = facts.lustre_tiers[1000].problem(gib)
    assert (problem is None) is offered
    assert offered or "1530000" in str(problem)


def test_the_tiers_are_those_that_the_provider_knows() -> None:
    """Of the sizes its docstring says less than the service (7632000 GiB), of the throughputs the same."""
    package = importlib.util.find_spec("pulumi_gcp")
    assert package and package.origin
    text = (Path(package.origin).parent / "lustre/instance.py").read_text()
    found = re.search(r"throughput of the instance in MBps per TiB. Valid values are ([\d,\s]+)\.", text)
    assert found and set(map(int, found[1].split(","))) == set(facts.lustre_tiers)


def test_tiers_of_lustre_start_at_the_same_total_throughput() -> None:
    """The smallest sizes of the documentation are one rule: capacity grows as the tier's throughput falls."""
    assert {row.bands[0][0] * row.throughput for row in facts.lustre_tiers.values()} == {9_000_000}
