"""The remaining tables, and what holds for every row of every table."""

import dataclasses
import datetime
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from infra.catalog import tables
from infra.catalog.aws import facts
from infra.catalog.aws.catalog import AwsCatalog
from infra.catalog.aws.jobs import jobs
from infra.catalog.aws.pcs import pcs
from infra.catalog.errors import UnknownFactError
from infra.catalog.fact import Fact
from infra.catalog.tables import CatalogError

AWS: AwsCatalog = facts
DATA = Path(tables.__file__).parent / "aws/tables"
A_DAY = datetime.date(2026, 11, 21)


def every_row() -> dict[str, Iterable[Fact]]:
    return {
        "accelerators": AWS.accelerators.values(),
        "instance_types": AWS.instance_types.values(),
        "prices": AWS.prices.values(),
        "service_prices": AWS.service_prices.values(),
        "regions": AWS.regions.values(),
        "lustre": AWS.lustre.tiers.values(),
        "eks.versions": AWS.eks.versions.values(),
        "eks.addons": AWS.eks.addons.values(),
        "releases.addons": AWS.releases.addons.values(),
        "releases.node_images": AWS.releases.node_images.values(),
        "eks.zones": AWS.eks.zones_without.values(),
        "quotas": AWS.quotas.values(),
        "permissions": AWS.permissions.values(),
        "permissions.resources": AWS.simulated_resources.values(),
        "limits": AWS.limits.values(),
        "cpu_families": AWS.cpu_types.values(),
        "job_machines.families": jobs.families.values(),
        "job_machines.prices": jobs.prices.values(),
        "endpoints": AWS.endpoint_gaps.values(),
        "pcs.sizes": pcs.sizes.values(),
        "pcs.versions": pcs.versions.values(),
        "pcs.settings": pcs.settings.values(),
        "durations": [row for rows in AWS.durations.values() for row in rows],
    }


@pytest.mark.parametrize("table", list(every_row()))
def test_every_row_says_where_it_comes_from_and_when(table: str) -> None:
    rows = list(every_row()[table])
    assert rows
    for row in rows:
        assert len(row.source) > 8, row
        assert datetime.date(2019, 1, 1) <= row.date <= datetime.date.today(), row


def test_every_data_file_is_read_by_a_table() -> None:
    stems = {name.split(".", maxsplit=1)[0] for name in every_row()}
    assert {path.stem for path in DATA.glob("*.toml")} == stems


def test_no_source_is_listed_without_a_row() -> None:
    for path in DATA.glob("*.toml"):
        content = tomllib.loads(path.read_text())
        used = {row["source"] for rows in content.values() if isinstance(rows, list) for row in rows}
        assert used == set(content["sources"]), path.name


def test_regions_name_their_zones_and_only_known_types() -> None:
    for region in AWS.regions.values():
        assert all(zone.startswith(region.name) for zone in region.zones)
        assert len(region.zones) == len(region.zone_ids)
        for name, zones in region.instance_types.items():
            assert name in AWS.instance_types
            assert set(zones) <= set(region.zone_ids)


def test_regions_answer_what_they_offer() -> None:
    assert AWS.region("us-east-1").offers("p5.48xlarge")
    assert not AWS.region("eu-west-1").offers("p5.48xlarge")
    with pytest.raises(UnknownFactError, match="us-east-1"):
        AWS.region("us-est-1")


@pytest.mark.parametrize(
    ("version", "support"),
    [
        ("1.31", "extended"),
        ("1.33", "extended"),
        ("1.34", "standard"),
        ("1.35", "standard"),
        ("1.36", "standard"),
    ],
)
def test_kubernetes_support_on_a_day(version: str, support: str) -> None:
    assert AWS.eks.support(version, A_DAY) == support


def test_support_is_unknown_where_a_source_has_no_dates() -> None:
    without = {"standard_support_ends": None, "extended_support_ends": None}
    undated = AWS.eks.versions["1.36"].model_copy(update=without)
    assert dataclasses.replace(AWS.eks, versions={"1.36": undated}).support("1.36", A_DAY) == "unknown"


def test_kubernetes_support_ends() -> None:
    assert AWS.eks.support("1.31", datetime.date(2026, 11, 26)) == "ended"
    assert AWS.eks.support("1.34", datetime.date(2026, 12, 2)) == "extended"
    with pytest.raises(UnknownFactError, match=r"1\.36"):
        AWS.eks.support("1.63", A_DAY)


def test_a_version_older_than_one_whose_support_has_ended_is_out_of_support() -> None:
    assert AWS.eks.support("1.9", datetime.date(2026, 11, 26)) == "ended"
    for version, day in (("1.9", 25), ("0.x", 26), ("1", 26)):
        with pytest.raises(UnknownFactError):
            AWS.eks.support(version, datetime.date(2026, 11, day))


def test_addons_report_the_identity_of_their_pods() -> None:
    fsx = AWS.eks.addon("aws-fsx-csi-driver")
    (identity,) = fsx.identities
    assert (fsx.namespace, identity.service_account) == ("kube-system", "fsx-csi-controller-sa")
    assert identity.actions == ("fsx:DescribeFileSystems",) and identity.managed_policies == ()
    assert not AWS.eks.addon("coredns").identities
    with pytest.raises(UnknownFactError, match="aws-fsx-csi-driver"):
        AWS.eks.addon("fsx-csi-driver")


def test_quota_that_sources_disagree_on_has_no_value() -> None:
    assert AWS.quotas["ec2_on_demand_p"].value is None
    assert AWS.quotas["ec2_on_demand_p"].quota_code == "L-417A185B"
    assert AWS.quotas["vpcs"].value == 5


def test_catalog_is_read_once_and_only_when_asked(tmp_path: Path) -> None:
    assert AWS.instance_types is AWS.instance_types
    empty = AwsCatalog(tmp_path)
    with pytest.raises(CatalogError, match=r"lustre\.toml: "):
        _ = empty.lustre


def test_import_brings_no_engine_and_reads_no_table() -> None:
    code = (
        "import sys, infra.catalog.aws as c; "
        "heavy = {'pulumi', 'boto3', 'moto', 'grpc'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "assert not {k for k in vars(c.facts) if k != '_folder'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=DATA.parents[3])
