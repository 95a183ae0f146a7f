"""A large stack on two clouds: each stack is checked in its own account, for what it needs there."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from infra import stackspec
from infra.errors import UserError
from infra.stackspec import StackSpec
from tests.trainstack.preflight.gcp.asking import Google, asked, project
from tests.trainstack.preflight.gcp.quota_answers import google
from trainstack.cli.app import app
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.deployment import Preflight, manager_elsewhere
from trainstack.preflight.gcp import apis, permissions, quotas

CHECKS = {"aws": ("account", "quotas"), "gcp": ("account", "apis")}
MANAGER = "large-mixed"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, list[str]]]:
    """The stacks that a fake of each cloud is asked about, with the checks."""
    found: list[tuple[str, str, list[str]]] = []

    def services_of(cloud: str) -> SimpleNamespace:
        def preflight(spec: StackSpec, together: Sequence[StackSpec]) -> Preflight:
            assert {one.name for one in together} == {MANAGER, f"{MANAGER}-use1", f"{MANAGER}-usc1"}

            def ask(only: Collection[str]) -> list[Answer]:
                found.append((spec.name, cloud, [*only]))
                return [Answer(one, State.READY, spec.name) for one in only]

            return Preflight(cloud, "account", CHECKS[cloud], (), ask, dict)

        return SimpleNamespace(preflight=preflight)

    monkeypatch.setattr("trainstack.cli.preflight.services_of", services_of)
    return found


def test_each_stack_is_checked_by_its_own_cloud(seen: list[Any]) -> None:
    done = CliRunner().invoke(app, ["preflight", "-s", MANAGER, "--skip", "apis", "--format", "json"])
    assert done.exit_code == 0, done.output
    assert seen == [
        (MANAGER, "aws", ["account", "quotas"]),
        (f"{MANAGER}-use1", "aws", ["account", "quotas"]),
        (f"{MANAGER}-usc1", "gcp", ["account"]),  # `apis` is a check of Google Cloud alone
    ]
    assert set(json.loads(done.stdout)["clusters"]) == {f"{MANAGER}-use1", f"{MANAGER}-usc1"}


def test_a_check_of_neither_cloud_is_refused(seen: list[Any]) -> None:
    done = CliRunner().invoke(app, ["preflight", "-s", MANAGER, "--skip", "api"])
    assert isinstance(done.exception, UserError) and done.exception.codes == (("unknown-check", "--skip"),)
    assert seen == []


def test_a_cluster_of_a_manager_elsewhere_needs_pools_of_identities_and_their_api() -> None:
    alone = project(Google())
    joined = replace(alone, beside=(stackspec.load_file(MANAGER).spec,))
    assert {*apis.wanted(joined)} - {*apis.wanted(alone)} == {"sts.googleapis.com"}
    more = {*permissions.permissions(joined.spec, federated=True)} - {*permissions.permissions(alone.spec)}
    assert {one.rpartition(".")[0] for one in more} == {
        "iam.workloadIdentityPools",
        "iam.workloadIdentityPoolProviders",
    }


def test_stacks_of_another_account_take_no_quota_of_the_project() -> None:
    alone = project(google())
    far = alone.spec.model_copy(
        update={"name": "far", "on": alone.on.model_copy(update={"project": "another-project"})}
    )
    manager = stackspec.load_file(MANAGER).spec
    joined = replace(alone, beside=(manager, far))
    assert [one.text for one in asked(quotas.room, joined)] == [one.text for one in asked(quotas.room, alone)]


def test_a_cluster_alone_is_checked_as_one_of_its_large_stack(seen: list[Any]) -> None:
    """The rights that its manager needs, which is on another cloud, are checked with it."""
    done = CliRunner().invoke(app, ["preflight", "-s", f"{MANAGER}-usc1", "--format", "json"])
    assert done.exit_code == 0, done.output
    assert seen == [(f"{MANAGER}-usc1", "gcp", ["account", "apis"])]


def test_a_manager_is_elsewhere_by_its_cloud_and_its_account() -> None:
    manager, here, away = (stackspec.load_file(f"{MANAGER}{one}").spec for one in ("", "-use1", "-usc1"))
    together = [manager, here, away]
    assert [manager_elsewhere(one, together) for one in together] == [None, None, manager]
    apart = here.model_copy(update={"on": here.on.model_copy(update={"account_id": "210987654321"})})
    assert manager_elsewhere(apart, together) == manager
    assert manager_elsewhere(here, [here]) is None
