"""The life of a stack without a cluster on the emulated Google Cloud, by the real engine.

The project is of an organization with Google's security baseline, which allows the publisher of budgets.
"""

import base64
import datetime
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from infra.catalog.gcp.deploying import PUBLISHER
from infra.engine.stack import EngineStack
from infra.exit_codes import ExitCode
from rehearsal.client import Rehearsal
from rehearsal.core.state import State
from tests.rehearsal.runs import life, small
from tests.rehearsal.runs.life import NOTHING, Done, Seen, do
from tests.rehearsal.runs.small import ADA, EXAMPLES, OTHERS, SMALL, Begun, Lives

STACK = "small-gcp"
ACCOUNT = "small-gcp-job-ada@example-ml-jobs.iam.gserviceaccount.com"
pytestmark = pytest.mark.timeout(900)
# The template itself, which does not end by itself where it has no checkpoint yet.
HALF = """import pathlib, os, subprocess, sys, time
first = not any(pathlib.Path(os.environ["TRAINSTACK_CHECKPOINTS"]).glob("step-*.pt"))
steps = ["--steps", "20" if first else "40"]
ended = subprocess.run([sys.executable, "-u", "train.py", *sys.argv[1:], *steps])
if first:
    time.sleep(600)
sys.exit(ended.returncode)
"""


@dataclass(frozen=True)
class Life:
    """Output of each command."""

    begun: Begun
    grown: list[Mapping[str, Any]]
    """Steps of a preview as `medium`."""
    ran: Mapping[str, Done]
    """The first run of each template."""
    recorded: list[Mapping[str, Any]]
    """Runs of the team's experiment in MLflow."""
    records: list[dict[str, Any]]
    """Records of the function about jobs that it stopped."""
    endless: str
    """The name of a job of eve, which her budget stops."""
    announced: Mapping[str, Sequence[str]]
    """Runs that lose their identity with a person or a team."""
    runs: str
    left: list[str]
    """Types of the resources of the state after the first destroy."""
    refused: Seen
    """The first destroy."""
    destroyed: Seen


# The other templates end as they do on AWS (test_small_stack.py).
@pytest.fixture(scope="module", params=[(), pytest.param(OTHERS, marks=pytest.mark.more)], ids=len)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    for home in life.home(tmp_path_factory.mktemp(STACK)):
        yield _live(home, tmp_path_factory.mktemp("code"), request.param)


def _live(home: Path, code: Path, others: Sequence[str]) -> Life:
    life.in_a_new_organization(home, PUBLISHER)
    begun = small.begin(home, STACK)
    grown = small.grown(home, STACK, _as_medium)
    ran = small.templates(home, STACK, lambda: _interrupted(home, code / "finetune"), others)
    endless = small.endless(home, STACK, code / "forever")
    announced = small.announced(home, STACK)
    _notify(home)
    small.until(lambda: len(small.records(home)) == 2 and endless in _over(home))
    recorded, records = _recorded(home), small.records(home)
    runs = do(home, "runs", stack=STACK).stdout
    refused = small.end(home, STACK)
    return Life(
        refused=refused,
        left=[one["type"] for one in EngineStack(STACK, Rehearsal(home).environment()).resources()],
        begun=begun,
        grown=grown,
        ran=ran,
        recorded=recorded,
        records=records,
        endless=endless,
        announced=announced,
        runs=runs,
        destroyed=small.end(home, STACK),
    )


def _as_medium(config: Any) -> None:
    """The changes of docs/how-to/growing.md."""
    config["trainstack:profile"] = "medium"
    spec = config["trainstack:spec"]
    zones = spec["layout"]["zones"]
    pool = {"name": "l4", "machine": "g2-standard-8", "purpose": "fine_tuning", "purchase": {"kind": "spot"}}
    spec["layout"] = {"zones": zones, "pools": [{**pool, "zones": zones, "rdma": False, "max_nodes": 4}]}
    spec["teams"] = [{"name": name, "gpus": {"l4": 1}} for name in ("vision", "language")]
    spec["on"]["admins"] = ["group:ml@example.com"]
    spec["data"]["shared_fs"] = None


def _interrupted(home: Path, folder: Path) -> Done:
    """A fine-tuning whose machine is interrupted after a checkpoint."""
    shutil.copytree(EXAMPLES / "finetune", folder)
    (folder / "half.py").write_text(HALF)
    arguments = (str(folder), *ADA, "--spot", "--script", "half.py", "--", *SMALL)
    with ThreadPoolExecutor(1) as other:
        running = other.submit(do, home, "run", *arguments, stack=STACK)
        small.until(lambda: running.done() or any(home.glob("gs/*checkpoints*/**/step-*20.pt")), 240)
        Rehearsal(home).set_faults({"interruptions": [{"seconds": 0.1}]})
        return running.result()


def _response(home: Path, path: str, body: Any) -> Any:
    """Response of an API to the user of the rehearsal."""
    with Rehearsal(home).serving() as environment:
        login = json.loads(Path(environment["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())
        form = {"grant_type": "refresh_token", "refresh_token": login["refresh_token"]}
        token = requests.post(login["token_url"], data=form, timeout=30).json()["access_token"]
        url = f"{environment['CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB']}{path}"
        answer = requests.post(url, json=body, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        assert answer.ok, answer.text
        return answer.json()


def _notify(home: Path) -> None:
    """Send the notification of Cloud Billing that eve's budget is used up."""
    month = datetime.datetime.now(datetime.UTC).replace(day=1)
    notification = {
        "budgetDisplayName": f"{STACK}-person-eve-monthly",
        "costAmount": 501,
        "budgetAmount": 500,
        "costIntervalStart": month.isoformat(),
        "currencyCode": "USD",
    }
    message = {"data": base64.b64encode(json.dumps(notification).encode()).decode()}
    topics = [one.id for one in _all(home, "gcp:pubsub/topic:Topic")]
    (topic,) = (one for one in topics if f"/{STACK}-budgets-" in one)
    _response(home, f"v1/{topic}:publish", {"messages": [message]})


def _recorded(home: Path) -> list[Mapping[str, Any]]:
    """The runs of the team in MLflow, through the proxy, for the account of ada's jobs."""
    uri = next(one.outputs["uri"] for one in _all(home, "gcp:cloudrunv2/service:Service") if one.inputs)
    url, now = Rehearsal(home).service_url(uri), int(time.time())
    claims = {"iss": ACCOUNT, "sub": ACCOUNT, "aud": f"{url}/*", "iat": now, "exp": now + 600}
    signed = _response(
        home, f"v1/projects/-/serviceAccounts/{ACCOUNT}:signJwt", {"payload": json.dumps(claims)}
    )
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {signed['signedJwt']}"
    api = f"{url}/api/2.0/mlflow"
    found = session.get(f"{api}/experiments/get-by-name?experiment_name=vision", timeout=120).json()
    asked = {"experiment_ids": [found["experiment"]["experiment_id"]], "max_results": 100}
    return [
        {
            "name": run["info"]["run_name"],
            "status": run["info"]["status"],
            **{tag["key"]: tag["value"] for tag in run["data"].get("tags", ())},
            **{metric["key"]: metric["value"] for metric in run["data"].get("metrics", ())},
        }
        for run in session.post(f"{api}/runs/search", json=asked, timeout=60).json()["runs"]
    ]


def _over(home: Path) -> set[str]:
    """The names of jobs that were cancelled."""
    state = State(home / "state.sqlite")
    try:
        jobs = state.documents("vertex-custom-job").values()
        return {job["request"]["displayName"] for job in jobs if job["state"] == "JOB_STATE_CANCELLED"}
    finally:
        state.close()


def _all(home: Path, type: str) -> list[Any]:
    state = State(home / "state.sqlite")
    try:
        return list(state.find(type=type))
    finally:
        state.close()


def _identity(step: Mapping[str, Any]) -> str:
    """Identity of a permission, agent or folder in the cloud; two with the same identity are one."""
    inputs = (step.get("newState") or step["oldState"]).get("inputs", {})  # components have none
    identity = {key: value for key, value in inputs.items() if not key.startswith("__")}
    return f"{small.kind(step)} {json.dumps(identity, sort_keys=True)}"


class TestLife(Lives):
    """With tests that are specific to Google Cloud."""

    stack = STACK
    says = ("vertex for 3 people", f"person ada (vision): {ACCOUNT.partition('.')[0]}")
    price = "$0.10 (1 x 0.1 h x $0.981671)"
    # The data access log of Cloud Storage and the role of Eventarc's agent are settings of the project, which
    # outlive the stack.
    stays = {**NOTHING, "gcp": 2}  # noqa: RUF012 - read only

    def test_a_run_continues_from_its_checkpoint(self, lived: Life) -> None:
        assert "step 20" in lived.ran["finetune"].stdout

    def test_mlflow_behind_the_proxy_has_every_run(self, lived: Life) -> None:
        for template in lived.ran:
            name = f"{STACK}-ada-{template}-"
            (run,) = (one for one in lived.recorded if str(one["name"]).startswith(name))
            assert (run["status"], run["owner"], run["team"]) == ("FINISHED", "ada", "vision")
            assert run["dataset"] and run["trainstack.code_version"] and run["job/duration_seconds"] > 0
            assert run["trainstack.interruptions"] == ("1" if template == "finetune" else "0")

    def test_a_budget_stops_jobs_above_it_and_reports_them(self, lived: Life) -> None:
        stopped = {record["kind"]: record for record in lived.records}
        assert set(stopped) == {"custom-job", "notebook"}
        assert {record["outcome"] for record in lived.records} == {"stopped"}
        assert stopped["custom-job"]["name"] == lived.endless
        assert (stopped["custom-job"]["spent_usd"], stopped["custom-job"]["limit_usd"]) == (501, 500)
        assert any(line.startswith(lived.endless) and " stopped " in line for line in lived.runs.splitlines())

    def test_addresses_of_cloud_run_leave_a_network_and_a_subnetwork_to_the_next_destroy(
        self, lived: Life
    ) -> None:
        assert lived.refused.done.returncode == ExitCode.FAILED
        cloud = [one.partition(":")[2] for one in lived.left if one.startswith("gcp:")]
        created = sorted(one for one in cloud if one != "projects/service:Service")  # APIs stay enabled
        assert created == ["compute/network:Network", "compute/subnetwork:Subnetwork"]

    def test_growing_keeps_network_and_data(self, lived: Life) -> None:
        done = {(step["op"], small.kind(step)) for step in lived.grown}
        for kept in ("compute/network:Network", "storage/bucket:Bucket", "kms/cryptoKey:CryptoKey"):
            assert {op for op, kind in done if kind == f"gcp:{kept}"} <= {"same", "update", "create"}, kept
        assert ("delete", "gcp:workbench/instance:Instance") in done
        assert ("create", "gcp:container/cluster:Cluster") in done

    def test_growing_deletes_nothing_that_it_creates(self, lived: Life) -> None:
        """Deletions are last: of two identical permissions, none would be left.

        Agents of services are not affected: Service Usage API v1beta1 generates them, and deletes none.
        """
        made = {_identity(step) for step in lived.grown if step["op"] == "create"}
        gone = {_identity(step) for step in lived.grown if step["op"] == "delete"}
        shared = ("IAMMember", "IamMember", "ManagedFolder ")
        assert [one for one in made & gone if any(kind in one for kind in shared)] == []
