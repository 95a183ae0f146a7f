"""Secret Manager for the tracking pods: first values, who was faster, rights that arrive late."""

from collections.abc import Iterator

import pytest

from agents.gcp.mlflow_server.secret_store import (
    BACKUP_S,
    PATIENCE_S,
    SecretManagerClient,
    SecretManagerError,
    connect,
)
from agents.mlflow_server import administrator
from tests.components.gcp.tracking.google import Google, google

SECRET = "projects/dev-1/secrets/mlflow-admin"
LOGIN = {"username": "admin", "password": "pass", "session_key": "key"}


@pytest.fixture
def cloud() -> Iterator[Google]:
    with google() as found:
        found.secrets[SECRET] = []
        yield found


class Clock:
    """Time that passes only while a program pauses."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def store(cloud: Google, clock: Clock | None = None) -> SecretManagerClient:
    clock = clock or Clock()
    return SecretManagerClient(cloud.environment, clock=clock, pause=clock.pause)


def test_an_empty_secret_has_no_value_and_then_the_first_one(cloud: Google) -> None:
    secrets = store(cloud)
    assert secrets.read(SECRET) is None
    assert secrets.store_first(SECRET, LOGIN) is True
    assert secrets.read(SECRET) == (LOGIN, f"{SECRET}/versions/1")


def test_replicas_that_start_together_use_the_same_value(cloud: Google) -> None:
    fast, slow = store(cloud), store(cloud)
    assert fast.read(SECRET) is None and slow.read(SECRET) is None
    assert fast.store_first(SECRET, LOGIN) is True
    assert slow.store_first(SECRET, LOGIN | {"password": "other"}) is False
    assert fast.read(SECRET) == slow.read(SECRET) == (LOGIN, f"{SECRET}/versions/1")
    # Google's own tools read the latest.
    assert cloud.values(SECRET)[-1] == LOGIN


def test_the_server_makes_its_first_user_in_it(cloud: Google) -> None:
    first = administrator.password(store(cloud), SECRET)
    assert administrator.password(store(cloud), SECRET) == first
    assert len(cloud.secrets[SECRET]) == 1


INSTANCE = "projects/p/instances/dev-mlflow"


def test_a_backup_is_awaited_and_named_and_a_failed_one_is_reported(cloud: Google) -> None:
    cloud.progress = ["RUNNING", "SUCCESSFUL"]
    assert store(cloud).snapshot(INSTANCE, "before-abc") == f"{INSTANCE}/backupRuns/77"
    assert ("POST", f"/v1/{INSTANCE}/backupRuns", {"description": "before-abc"}) in cloud.asked
    cloud.progress = ["SUCCESSFUL", "FAILED"]
    with pytest.raises(SecretManagerError, match="FAILED"):
        store(cloud).snapshot(INSTANCE, "before-def")


def test_errors_of_a_moment_do_not_end_a_backup_and_make_no_second_one(cloud: Google) -> None:
    clock = Clock()
    backups = store(cloud, clock)
    clock.now = PATIENCE_S  # the pods of the old servers took that long to end
    cloud.refusals, cloud.lost = [429], [503]
    cloud.progress = ["RUNNING", 503, "RUNNING", 500, "SUCCESSFUL"]
    assert backups.snapshot(INSTANCE, "before-abc") == f"{INSTANCE}/backupRuns/77"
    assert len(cloud.backups) == 1


def test_a_backup_waits_for_another_operation_but_not_for_a_permission_or_for_ever(cloud: Google) -> None:
    clock = Clock()
    backups = store(cloud, clock)
    clock.now = PATIENCE_S
    cloud.refusals = [409, 409]
    cloud.progress = ["SUCCESSFUL"]
    assert backups.snapshot(INSTANCE, "before-abc") == f"{INSTANCE}/backupRuns/77"
    cloud.refusals = [403]
    with pytest.raises(SecretManagerError, match="status 403"):
        backups.snapshot(INSTANCE, "before-def")
    cloud.progress = ["RUNNING"] * 1000
    begun = clock.now
    with pytest.raises(SecretManagerError, match="RUNNING"):
        backups.snapshot(INSTANCE, "before-abc")
    assert clock.now - begun <= BACKUP_S


@pytest.mark.parametrize("state", ["DISABLED", "DESTROYED"])
def test_a_value_that_people_replaced_is_the_latest(cloud: Google, state: str) -> None:
    cloud.add(SECRET, LOGIN, state)
    cloud.add(SECRET, LOGIN | {"password": "new"})
    found = store(cloud).read(SECRET)
    assert found is not None and found[0]["password"] == "new"


def test_a_secret_without_a_value_that_can_be_read_is_no_empty_one(cloud: Google) -> None:
    """A server that took it for empty would store a password that its database does not know."""
    cloud.add(SECRET, LOGIN, "DISABLED")
    with pytest.raises(SecretManagerError, match="status 400"):
        store(cloud).read(SECRET)


def test_rights_that_arrive_late_are_awaited_at_the_start(cloud: Google) -> None:
    cloud.add(SECRET, LOGIN)
    cloud.refusals = [403, 503, 403]
    assert store(cloud).read(SECRET) is not None


def test_later_a_refusal_is_one(cloud: Google) -> None:
    clock = Clock()
    secrets = store(cloud, clock)
    clock.now = PATIENCE_S
    cloud.refusals = [403]
    with pytest.raises(SecretManagerError, match="status 403"):
        secrets.read(SECRET)
    assert cloud.refusals == []


def test_no_patience_lasts_for_ever(cloud: Google) -> None:
    clock = Clock()
    cloud.refusals = [403] * 1000
    with pytest.raises(SecretManagerError):
        store(cloud, clock).read(SECRET)
    assert clock.now <= PATIENCE_S


def test_a_database_login_is_a_fresh_token_of_the_account(cloud: Google) -> None:
    secrets = store(cloud)
    identity = "dev-mlflow@dev-1.iam.gserviceaccount.com"
    assert [secrets.token(identity), secrets.token(identity)] == ["login-1", "login-2"]
    paths = {path for _, path, _ in cloud.asked if "generateAccessToken" in path}
    assert paths == {f"/v1/projects/-/serviceAccounts/{identity}:generateAccessToken"}


def test_the_pods_own_token_is_kept_until_it_ends(cloud: Google) -> None:
    clock, cloud.expires_in = Clock(), 600
    secrets = store(cloud, clock)

    def tokens() -> int:
        return sum("computeMetadata" in path for _, path, _ in cloud.asked)

    secrets.read(SECRET), secrets.read(SECRET)
    assert tokens() == 1
    clock.now = 500.0
    secrets.read(SECRET)
    assert tokens() == 2


def test_what_went_wrong_names_the_secret_and_no_value(cloud: Google) -> None:
    cloud.refusals = [400]
    with pytest.raises(SecretManagerError, match=f"{SECRET}:addVersion: status 400: .*not yet") as caught:
        store(cloud).store_first(SECRET, LOGIN)
    assert "pass" not in str(caught.value) and "token-of" not in str(caught.value)


def test_no_answer_at_all_is_an_error_of_the_operating_system() -> None:
    """What waits for the server's first user tries these again."""
    clock = Clock()
    nowhere = {"GCE_METADATA_HOST": "127.0.0.1:1"}
    with pytest.raises(OSError, match="computeMetadata"):
        SecretManagerClient(nowhere, clock=clock, pause=clock.pause).read(SECRET)


def test_it_needs_no_setting() -> None:
    assert isinstance(connect({}), SecretManagerClient)
