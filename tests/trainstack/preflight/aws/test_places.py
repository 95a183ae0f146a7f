"""Regions, zones and machine types, as this account has them."""

import datetime
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import moto
import pytest

from tests.trainstack.preflight.aws.asking import ZONES, Answering, Cloud, Refusal, account, asked, states
from tests.trainstack.preflight.aws.test_jobs import account as small_account
from trainstack.preflight.answers import State
from trainstack.preflight.aws import places

ALL = [
    (machine, key)
    for machine in ("m6i.xlarge", "m6i.4xlarge", "g6.2xlarge", "p4d.24xlarge")
    for key in ZONES.values()
    if (machine == "p4d.24xlarge") <= (key == "use1-az1")
]


def offering(rows: list[tuple[str, str]]) -> Cloud:
    kind = "availability-zone-id"
    found = [{"InstanceType": one, "Location": key, "LocationType": kind} for one, key in rows]
    return (
        Cloud().zones().answers("ec2", "describe_instance_type_offerings", {"InstanceTypeOfferings": found})
    )


@pytest.mark.parametrize(
    ("status", "state"),
    [("opt-in-not-required", State.READY), ("opted-in", State.READY), ("not-opted-in", State.SHORT)],
)
def test_a_region_that_is_not_enabled_is_asked_about_elsewhere(status: str, state: State) -> None:
    row = {"RegionName": "us-east-1", "OptInStatus": status}
    cloud = Cloud().answers(
        "ec2", "describe_regions", {"Regions": [row]}, RegionNames=["us-east-1"], AllRegions=True
    )
    (answer,) = asked(places.region, account(cloud))
    assert answer.state is state
    assert cloud.regions == [("ec2", "us-east-1")]
    assert state is State.READY or "aws account enable-region --region-name us-east-1" in answer.fix


def test_zones_of_the_account_are_fine() -> None:
    (answer,) = asked(places.zones, account(Cloud().zones()))
    assert answer.state is State.READY and "us-east-1b (use1-az1)" in answer.text


def test_a_zone_without_eks_is_found_by_its_id_whatever_its_name() -> None:
    (answer,) = asked(
        places.zones,
        account(Cloud().zones(), layout__zones=["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1e"]),
    )
    assert answer.state is State.SHORT
    assert "use1-az3" in answer.text and "us-east-1e" not in answer.fix


def test_a_zone_that_the_account_lacks() -> None:
    (answer,) = asked(
        places.zones,
        account(Cloud().zones(), layout__zones=["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1f"]),
    )
    assert answer.state is State.SHORT and "us-east-1f" in answer.text


def test_types_are_offered_in_all_their_zones() -> None:
    cloud = offering(ALL)
    assert states(asked(places.types, account(cloud))) == [State.READY]
    assert cloud.is_exhausted()


def test_a_type_that_a_zone_lacks_is_named_with_the_zones_that_have_it() -> None:
    rows = [row for row in ALL if row[0] != "p4d.24xlarge"] + [("p4d.24xlarge", "use1-az6")]
    (answer,) = asked(places.types, account(offering(rows)))
    assert answer.state is State.SHORT
    assert {"layout.pools[0]:", "p4d.24xlarge", "us-east-1b"} <= {*answer.text.split()}
    assert "us-east-1a" in answer.fix


@pytest.mark.parametrize(
    ("status", "state"),
    [("STANDARD_SUPPORT", State.READY), ("EXTENDED_SUPPORT", State.SHORT), ("UNSUPPORTED", State.SHORT)],
)
def test_a_version_that_went_out_of_standard_support(status: str, state: State) -> None:
    end = datetime.datetime(2027, 3, 27, tzinfo=datetime.UTC)
    rows = [
        {"clusterVersion": "1.37", "versionStatus": "STANDARD_SUPPORT"},
        {"clusterVersion": "1.36", "versionStatus": status, "endOfStandardSupportDate": end},
    ]
    cloud = Cloud().answers("eks", "describe_cluster_versions", {"clusterVersions": rows})
    (answer,) = asked(places.kubernetes, account(cloud))
    assert answer.state is state
    assert "2027-03-27" in answer.text if state is State.READY else "1.37" in answer.fix


def test_what_may_not_be_asked_is_unknown() -> None:
    cloud = Cloud().refuses("eks", "describe_cluster_versions", "AccessDeniedException", "not authorized")
    (answer,) = asked(places.kubernetes, account(cloud))
    assert answer.state is State.UNKNOWN
    assert "DescribeClusterVersions" in answer.fix


def _parameters() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Answers of Systems Manager by moto's copy of AWS's public parameters."""
    known = moto_services()

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        found = [name for name in params["Names"] if name.split("/")[5] in known.get(name.split("/")[-1], ())]
        rest = [name for name in params["Names"] if name not in found]
        rows = [{"Name": name, "Value": name.rpartition("/")[2]} for name in found]
        return {"Parameters": rows, **({"InvalidParameters": rest} if rest else {})}

    return answer


def moto_services() -> dict[str, set[str]]:
    """Regions by service."""
    file = Path(moto.__file__).parent / "ssm" / "resources" / "services.json.gz"
    tree = json.loads(gzip.decompress(file.read_bytes()))
    found = tree["aws"]["service"]["global-infrastructure"]["services"]
    return {name: set(one.get("regions", ())) for name, one in found.items()}


def test_services_of_a_region_are_those_of_the_public_parameters() -> None:
    of = Answering(get_parameters=_parameters())
    (answer,) = asked(places.services, account(of))
    assert answer.state is State.READY
    (small,) = asked(places.services, small_account(of))
    assert small.state is State.READY


def test_a_region_without_a_service_is_short_with_its_name() -> None:
    region = "us-east-9"
    of = Answering(get_parameters=_parameters())
    there = account(of)
    there = replace(there, spec=there.spec.model_copy(update={"region": region}))
    short = [one for one in asked(places.services, there) if one.state is State.SHORT]
    assert any("fsx" in one.text and region in one.text for one in short)


def test_a_region_without_mlflow_apps_is_short_and_one_that_may_not_be_asked_unknown() -> None:
    of = Answering(get_parameters=_parameters(), list_mlflow_apps=Refusal("UnknownOperationException"))
    (answer,) = asked(places.services, small_account(of))
    assert answer.state is State.SHORT and "MLflow" in answer.text
    of.answers["list_mlflow_apps"] = Refusal("AccessDeniedException")
    (answer,) = asked(places.services, small_account(of))
    assert answer.state is State.UNKNOWN
