"""A new project: agents, their grants and what needs them, created by the engine one after the other."""

import datetime
import time
from collections.abc import Callable
from typing import Any

import pulumi_gcp as gcp
import pytest
from pulumi import automation

from components.base import Component
from components.gcp import propagation
from components.gcp.encryption import encryption_key
from components.gcp.functions.function import GcpFunction
from components.gcp.tracking.login import GcpDatabaseLogin
from infra.errors import UserError
from stacks.providers import gcp_provider
from tests.rehearsal.runs.updates import changes, refused

AGENT = "gcp:projects/serviceIdentity:ServiceIdentity"
GRANT = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"
Select = Callable[[Callable[[], None]], automation.Stack]


def program() -> None:
    """A bucket with a key, a function that a topic wakes, and a user of a database."""
    storage = gcp.storage.get_project_service_account_output(project="research")
    key = encryption_key(
        Component("keys"), "key", location="us-central1", purpose="data", users={"storage": storage.member}
    )
    bucket = gcp.storage.Bucket("source", location="us-central1", encryption={"default_kms_key_name": key.id})
    topic = gcp.pubsub.Topic("budgets")
    database = gcp.sql.DatabaseInstance(
        "runs",
        region="us-central1",
        database_version="POSTGRES_15",
        settings={
            "tier": "db-f1-micro",
            "database_flags": [{"name": "cloudsql.iam_authentication", "value": "on"}],
        },
        deletion_protection=False,
    )
    GcpDatabaseLogin("tracking", {"project": "research", "instance": database.name, "principals": {}})
    GcpFunction(
        "stop",
        {
            "project": "research",
            "project_number": gcp.organizations.get_project_output().number,
            "region": "us-central1",
            "packages": ["agents.gcp.budget_stop"],
            "environment": {},
            "topic": topic.id,
            "source_bucket": bucket.name,
            "timeout_s": 60,
        },
    )


@pytest.fixture
def project(stack: Select) -> automation.Stack:
    found = stack(program)
    found.set_config("gcp:project", automation.ConfigValue("research"))
    return found


def created(stack: automation.Stack) -> dict[str, list[Any]]:
    """Times of creation in the state, by type."""
    found: dict[str, list[Any]] = {}
    for one in (stack.export_stack().deployment or {}).get("resources") or []:
        found.setdefault(one["type"], []).append(one.get("created"))
    return found


def test_the_first_up_of_a_new_project_needs_no_second_and_the_next_stack_finds_the_role(
    project: automation.Stack,
) -> None:
    assert set(changes(project.up())) == {"create"}
    project.destroy()
    assert set(changes(project.up())) == {"create"}


def test_a_pause_that_was_cut_off_is_had_again(
    project: automation.Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut(_: float) -> None:
        raise OSError("the program ends in a pause")

    with monkeypatch.context() as ended:
        ended.setattr(propagation, "sleep", cut)
        refused(project)
    assert AGENT in created(project) and GRANT not in created(project)
    monkeypatch.setenv(propagation.VARIABLE, "5")
    began = time.time()
    project.up()
    (made,) = created(project)[GRANT]
    assert datetime.datetime.fromisoformat(made).timestamp() - began >= 5


@pytest.mark.parametrize("given", ["120s", "-1", "nan", "inf", "86400"])
def test_an_invalid_pause_is_refused_where_a_stack_begins(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(propagation.VARIABLE, given)
    with pytest.raises(UserError) as error:
        gcp_provider("provider", project="research", region="us-central1", labels={})
    assert error.value.codes == (("iam-delay-invalid", propagation.VARIABLE),)
