"""Permissions of the deployer, and enabled APIs."""

import importlib
import json
import re
from collections.abc import Collection
from typing import Any

import pytest

from infra.catalog.gcp import deploying
from tests.trainstack.preflight.gcp.asking import (
    DENIED,
    ID,
    NUMBER,
    Google,
    asked,
    disabled,
    project,
    refused,
)
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import apis, permissions

TEST, LIST = "cloudresourcemanager.projects.testIamPermissions", "serviceusage.services.list"

USABLE: dict[str, Any] = {
    "compute.zones.list": {},
    "container.projects.locations.getServerConfig": {},
    "file.projects.locations.instances.list": DENIED,
    "monitoring.projects.notificationChannels.list": DENIED,
    "pubsub.projects.topics.list": {},
}


def granted(without: Collection[str] = (), **changes: Any) -> tuple[Google, list[Any]]:
    google = Google(
        {TEST: lambda given: {"permissions": [x for x in given["permissions"] if x not in without]}}
    )
    return google, asked(permissions.deploying_in, project(google, **changes))


def test_a_deployer_that_may_do_everything_is_asked_about_in_small_lists() -> None:
    google, (answer,) = granted()
    assert answer.state is State.READY
    lists = [given["permissions"] for given in google.given(TEST)]
    assert all(0 < len(one) <= 100 for one in lists) and len(lists) > 1
    assert all(given["resource"] == f"projects/{ID}" for given in google.given(TEST))


def test_missing_permissions_are_reported_by_service() -> None:
    _, answers = granted(["container.clusters.create", "compute.networks.create", "compute.networks.delete"])
    assert [one.state for one in answers] == [State.SHORT, State.SHORT]
    assert answers[0].text.endswith("allows: compute.networks.create, compute.networks.delete")
    assert answers[1].text.endswith("allows: container.clusters.create")


def test_google_leaves_out_an_empty_list_which_grants_nothing() -> None:
    answers = asked(permissions.deploying_in, project(Google({TEST: {}})))
    assert {one.state for one in answers} == {State.SHORT}
    assert {"kms", "storage"} <= {
        re.split(r"[:.]", one.text)[1].strip().removeprefix("cloud") for one in answers
    }


def test_a_permission_that_iam_does_not_know_is_unknown_and_not_a_pass() -> None:
    said = refused(400, "INVALID_ARGUMENT", "Permission x.y.z is not valid for this resource.")
    (answer,) = asked(permissions.deploying_in, project(Google({TEST: said})))
    assert answer.state is State.UNKNOWN


PARTS: dict[str, Any] = {
    "data__shared_fs": None,
    "data__homes": False,
    "smoke__schedule": None,
    "layout__monitoring": {"kind": "none"},
    "layout__idle_gpus": None,
}


def test_nothing_is_asked_for_parts_that_the_stack_does_not_have() -> None:
    base = permissions.permissions(project(Google(), **PARTS).spec)
    absent = ("lustre.", "file.", "backupdr.", "cloudscheduler.", "monitoring.alertPolicies.", "billing.")
    more = ("storage.anywhereCaches.",)
    assert not [one for one in base if one.startswith((*absent, *more))]
    # Every cluster has MLflow, which backs its database up by a role of its own.
    assert {"iam.roles.create", "iam.roles.delete"} <= {*base}
    whole = permissions.permissions(project(Google(), on__dataset_cache=True).spec)
    found = {prefix for prefix in (*absent, *more) if any(one.startswith(prefix) for one in whole)}
    assert found == {*absent, *more} - {"billing."}
    discarded = permissions.permissions(project(Google(), data__on_destroy="discard").spec)
    assert not [one for one in discarded if one.startswith("backupdr.")]


def test_gpus_that_stay_are_watched_without_a_schedule_too() -> None:
    def alerts(**changes: Any) -> list[str]:
        found = permissions.permissions(project(Google(), **{**PARTS, **changes}).spec)
        return [one for one in found if one.startswith("monitoring.alertPolicies.")]

    assert alerts(layout__pools__0__min_nodes=1)
    assert not alerts(layout__pools__2__min_nodes=1)  # without GPUs
    assert alerts(layout__monitoring={"kind": "in_cluster", "retention_days": 15, "storage_gib": 50})
    assert alerts(data__homes=True)


def test_who_deploys_may_switch_apis_on() -> None:
    """The provider asks for those that are on, and its requests count against the project."""
    wanted = {f"serviceusage.services.{verb}" for verb in ("enable", "get", "list", "use")}
    assert wanted <= set(permissions.permissions(project(Google(), **PARTS).spec))
    (answer,) = granted(["serviceusage.services.enable"])[1]
    assert answer.state is State.SHORT and "serviceusage.services.enable" in answer.text


@pytest.mark.parametrize("token", deploying.permissions())
def test_types_are_those_of_the_sdk(token: str) -> None:
    if token.startswith("gcp:"):
        _, module, name = token.split(":")
        assert hasattr(importlib.import_module(f"pulumi_gcp.{module.partition('/')[0]}"), name)


def test_permissions_have_the_form_of_iam() -> None:
    for row in deploying.permissions().values():
        assert len(set(row.permissions)) == len(row.permissions)
        assert all(re.fullmatch(r"[a-z]+\.[a-zA-Z]+\.[a-zA-Z]+", one) for one in row.permissions), row.type


def enabled(names: Collection[str], **changes: Any) -> list[Any]:
    rows = [{"name": f"projects/{NUMBER}/services/{name}", "state": "ENABLED"} for name in names]
    return asked(apis.enabled, project(Google({**USABLE, LIST: {"services": rows}}), **changes))


def test_disabled_apis_are_reported_with_one_command() -> None:
    names = apis.wanted(project(Google()))
    (answer,) = enabled(names)
    assert answer.state is State.READY
    off = ("container.googleapis.com", "lustre.googleapis.com")
    (answer,) = enabled([name for name in names if name not in off])
    assert answer.state is State.SHORT
    assert answer.fix == f"gcloud services enable {' '.join(off)} --project={ID}"


def test_only_apis_that_the_spec_needs_are_wanted() -> None:
    without, more = apis.wanted(project(Google(), **PARTS)), apis.wanted(project(Google()))
    assert {one.partition(".")[0] for one in {*more} - {*without}} == {
        *("lustre", "cloudscheduler"),
        *("file", "backupdr"),
    }
    (answer,) = enabled(without, **PARTS)
    assert answer.state is State.READY
    assert "backupdr.googleapis.com" not in apis.wanted(project(Google(), data__on_destroy="discard"))


@pytest.mark.parametrize(("method", "service"), [(one, one.partition(".")[0]) for one in USABLE])
def test_an_api_that_is_enabled_and_not_yet_usable(method: str, service: str) -> None:
    names = apis.wanted(project(Google()))
    rows = [{"name": f"projects/{NUMBER}/services/{name}", "state": "ENABLED"} for name in names]
    said = {**USABLE, LIST: {"services": rows}, method: disabled(f"{service}.googleapis.com")}
    (answer,) = asked(apis.enabled, project(Google(said)))
    assert answer.state is State.SHORT and answer.text.endswith(f": {service}.googleapis.com")


def test_a_disabled_api_has_a_command_to_enable_it() -> None:
    (answer,) = asked(apis.enabled, project(Google({LIST: disabled("serviceusage.googleapis.com")})))
    assert answer.state is State.UNKNOWN
    assert answer.fix == f"gcloud services enable serviceusage.googleapis.com --project={ID}"


def test_pages_are_all_read() -> None:
    names = apis.wanted(project(Google()))
    rows = [{"name": f"projects/{NUMBER}/services/{name}", "state": "ENABLED"} for name in names]

    def paged(given: Any) -> Any:
        start = int(given.get("pageToken", 0))
        further = {"nextPageToken": str(start + 5)} if start + 5 < len(rows) else {}
        return {"services": rows[start : start + 5], **further}

    (answer,) = asked(apis.enabled, project(Google({**USABLE, LIST: paged})))
    assert answer.state is State.READY, json.dumps(answer.text)
