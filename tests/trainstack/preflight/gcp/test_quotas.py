"""Quotas of the project in Cloud Quotas, compared with the needs of the stack."""

import re
from dataclasses import replace
from typing import Any

from tests.trainstack.preflight.gcp.asking import DENIED, ID, NUMBER, aggregated, asked, disabled, project
from tests.trainstack.preflight.gcp.quota_answers import GET, PENDING, google, machine, room
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import quotas


def test_a_project_with_room_for_the_stack_at_its_largest() -> None:
    found = room(google())
    assert {one.state for one in found.values()} == {State.READY}
    assert {"h100_mega", "preemptible_l4", "gpus_all_regions", "cpus", "n2_cpus", "ssd_total_gb"} <= {*found}
    assert {"networks", "in_use_addresses", "filestore_gib", "cpus_all_regions"} <= {*found}


def test_a_new_project_gets_the_requests_for_quotas() -> None:
    found = room(
        google(
            {"gpus_all_regions": 0, "h100_mega": 0, "preemptible_l4": 1, "ssd_total_gb": 500, "networks": 5}
        )
    )
    assert {key for key, one in found.items() if one.state is State.SHORT} == {
        "gpus_all_regions",
        "h100_mega",
        "preemptible_l4",
        "ssd_total_gb",
        "networks",
    }
    assert {"32 GPU", "0 used", "0 allowed"} <= {*re.findall(r"\d+ \w+", found["h100_mega"].text)}
    assert found["h100_mega"].fix == (
        f"gcloud beta quotas preferences create --project={ID} --service=compute.googleapis.com "
        "--quota-id=GPUS-PER-GPU-FAMILY-per-project-region --preferred-value=32 "
        "--dimensions=region=us-central1,gpu_family=NVIDIA_H100_MEGA"
    )
    assert found["gpus_all_regions"].fix.endswith(
        "--quota-id=GPUS-ALL-REGIONS-per-project --preferred-value=40"
    )


def test_stacks_of_one_deployment_share_the_quotas_of_the_project() -> None:
    networks = {"items": [{"name": "beside-network"}, {"name": "of-others"}]}
    of = project(google(networks=networks))
    alone = {answer.check: answer for answer in asked(quotas.room, of)}
    far = of.spec.model_copy(update={"name": "beside", "region": "us-east4"})
    of = replace(of, beside=(far,))
    shared = {answer.check: answer for answer in asked(quotas.room, of)}

    def figures(text: str) -> list[int]:
        return [int(number) for number in re.findall(r"(\d+) (?:network|GPU|used)", text)]

    (needed, used), (both, others) = (figures(one["quota networks"].text)[:2] for one in (alone, shared))
    assert (both, used, others) == (2 * needed, 2, 1)
    assert shared["quota h100_mega"] == alone["quota h100_mega"], "another region"


def test_zero_is_left_out_of_json_and_is_still_zero() -> None:
    made = google()
    row = {"dimensions": {"region": "us-central1"}, "details": {}, "applicableLocations": ["us-central1"]}
    made.said[GET] = {"quotaId": "x", "dimensionsInfos": [row]}
    found = room(made)
    assert found["preemptible_l4"].state is State.SHORT and "0 allowed" in found["preemptible_l4"].text


def test_no_limit_is_minus_one() -> None:
    found = room(google({"n2_cpus": -1}))
    assert found["n2_cpus"].state is State.READY and "any number allowed" in found["n2_cpus"].text
    assert "n2_cpus" not in quotas.left(project(google({"n2_cpus": -1})))


def test_a_row_without_the_family_is_of_all_families_that_have_none() -> None:
    made = google()
    made.said[GET] = {
        "quotaId": "x",
        "dimensionsInfos": [
            {
                "dimensions": {"region": "us-central1", "gpu_family": "NVIDIA_H200"},
                "details": {"value": "64"},
            },
            {"details": {"value": "3"}, "applicableLocations": ["us-east4", "us-central1"]},
        ],
    }
    assert "3 allowed" in room(made)["h100_mega"].text


def test_a_row_of_other_places_is_not_of_this_one() -> None:
    made = google()
    made.said[GET] = {
        "quotaId": "x",
        "dimensionsInfos": [
            {"details": {"value": "99"}, "applicableLocations": ["us-east4"]},
            {"details": {"value": "3"}, "applicableLocations": ["us-central1", "global"]},
        ],
    }
    assert "3 allowed" in room(made)["preemptible_l4"].text


def test_what_others_use_may_leave_too_little() -> None:
    rows: dict[str, Any] = {"zones/us-central1-a": [machine("a3-megagpu-8g", ("nvidia-h100-mega-80gb", 8))]}
    others = aggregated("instances", rows)
    assert room(google({"h100_mega": 40}, instances=others))["h100_mega"].state is State.READY
    short = room(google({"h100_mega": 39}, instances=others))["h100_mega"]
    assert short.state is State.SHORT and "--preferred-value=40" in short.fix


def test_a_region_without_a_value_is_unknown() -> None:
    made = google()
    made.said[GET] = {"quotaId": "x", "dimensionsInfos": []}
    assert {one.state for one in room(made).values()} == {State.UNKNOWN}


def test_an_api_that_is_off_leaves_every_quota_unknown() -> None:
    made = google()
    made.said[GET] = disabled("cloudquotas.googleapis.com")
    found = room(made)
    assert {one.state for one in found.values()} == {State.UNKNOWN}
    assert found["h100_mega"].fix == f"gcloud services enable cloudquotas.googleapis.com --project={ID}"


def test_a_pending_request_is_shown() -> None:
    made = google({"h100_mega": 0})
    one = {
        "quotaId": "GPUS-PER-GPU-FAMILY-per-project-region",
        "dimensions": {"region": "us-central1", "gpu_family": "NVIDIA_H100_MEGA"},
        "quotaConfig": {"preferredValue": "64"},
        "reconciling": True,
    }
    other = {**one, "dimensions": {"region": "us-east4"}, "quotaConfig": {"preferredValue": "99"}}
    made.said[PENDING] = {"quotaPreferences": [one, other, {**one, "reconciling": False}]}
    assert "request for 64" in room(made)["h100_mega"].text
    made.said[PENDING] = DENIED
    assert "request for" not in room(made)["h100_mega"].text


def test_what_is_left_is_the_quotas_without_what_others_use() -> None:
    rows = {"zones/us-central1-a": [machine("a3-megagpu-8g", ("nvidia-h100-mega-80gb", 8))]}
    made = google({"h100_mega": 16, "networks": 5}, instances=aggregated("instances", rows))
    left = quotas.left(project(made))
    assert (left["h100_mega"], left["networks"]) == (8, 5)
    assert NUMBER not in str(made.given(GET))
