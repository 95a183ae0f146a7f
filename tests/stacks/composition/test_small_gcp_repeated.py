"""The validation repeated on Google Cloud without a cluster, composed: its schedule and alerts."""

import base64
import functools
import json

from infra import cost
from infra.catalog.gcp import deploying
from rehearsal.gcp.rules import BOOK
from tests.components.gcp.computed import PROJECT
from tests.components.graph import Graph
from tests.stacks.composition.composed import composed, stack_spec
from tests.stacks.composition.test_small_gcp import DAY, PAIR, VALIDATION, made


@functools.cache
def repeated() -> Graph:
    return composed(PAIR, lambda spec: spec["smoke"].update({"schedule": "0 5 ? * mon"}))


STARTER = f"serviceAccount:dev-smoke-repeated@{PROJECT}.iam.gserviceaccount.com"


def test_without_a_schedule_nothing_repeats_the_validation_and_no_topic_waits() -> None:
    assert made().all("cloudscheduler/job:Job") == {} and "dev-training-alerts-topic" not in made().all(
        "Topic"
    )
    assert made().outputs["smoke"]["schedule"] is None and made().outputs["smoke"]["alert_topic"] is None


def test_a_schedule_asks_vertex_for_the_same_job_once_each_time_in_utc() -> None:
    job = repeated().find("cloudscheduler/job:Job")
    assert (job["schedule"], job["timeZone"], job["retryConfig"]) == (
        "0 5 * * MON",
        "Etc/UTC",
        {"retryCount": 0},
    )
    target = job["httpTarget"]
    assert target["uri"].startswith(
        "https://us-central1-aiplatform.googleapis.com/v1/projects/example-ml-jobs/"
    )
    assert target["uri"].endswith("/locations/us-central1/customJobs") and target["httpMethod"] == "POST"
    assert json.loads(base64.b64decode(target["body"])) == {"displayName": "smoke-scheduled"}
    assert f"serviceAccount:{target['oauthToken']['serviceAccountEmail']}" == STARTER
    # What has not passed the gate is not worth repeating.
    before = repeated().created_after("Job:dev-smoke-repeated-job")
    assert {"JobGate:dev-smoke-run", "IAMMember:dev-smoke-repeated-acts"} <= before
    assert repeated().outputs["smoke"]["schedule"] == "dev-smoke-repeated-job"


def test_who_starts_it_may_start_jobs_as_the_validation_and_nothing_else() -> None:
    given = [asked for asked in repeated().cloud.asked if asked.properties.get("member") == STARTER]
    (project,) = [one.properties for one in given if one.type == "gcp:projects/iAMMember:IAMMember"]
    (acts,) = [one.properties for one in given if one.type == "gcp:serviceaccount/iAMMember:IAMMember"]
    assert len(given) == 2
    roles = {one["roleId"]: one["permissions"] for one in repeated().all("IAMCustomRole").values()}
    assert roles[project["role"].rpartition("/")[2]] == ["aiplatform.customJobs.create"]
    assert acts["serviceAccountId"].endswith(f"/serviceAccounts/{VALIDATION}")
    assert acts["role"] == "roles/iam.serviceAccountUser"


def test_what_a_repetition_finds_is_reported_to_people_and_programs() -> None:
    graph = repeated()
    topic = graph.outputs["smoke"]["alert_topic"]
    publishers = {one["member"] for one in graph.all("TopicIAMMember").values() if one["topic"] == topic}
    assert publishers == {f"serviceAccount:{VALIDATION}"}
    gate = graph.find("JobGate", "-run")
    assert json.loads(gate["scheduled_plan"])["alert_pubsub_topic"] == topic
    assert "alert_pubsub_topic" not in json.loads(gate["plan"])
    mailed = {
        name: one for name, one in graph.all("AlertPolicy").items() if name not in made().all("AlertPolicy")
    }
    assert {*mailed} == {"dev-training-alerts-policy", "dev-smoke-repeated-policy"}
    assert len({str(one["notificationChannels"]) for one in mailed.values()}) == 1


def test_a_start_that_fails_is_mailed_and_no_other_job_of_cloud_scheduler() -> None:
    policy = repeated().find("AlertPolicy", "smoke-repeated-policy")
    (condition,) = policy["conditions"]
    wanted = condition["conditionMatchedLog"]["filter"].split(" AND ")
    assert 'resource.labels.job_id="dev-smoke-repeated-job"' in wanted and "severity>=ERROR" in wanted
    assert policy["alertStrategy"]["notificationRateLimit"] == {"period": "300s"}
    assert "not started, ${log.extracted_label.status}" in policy["documentation"]["subject"]
    assert set(condition["conditionMatchedLog"]["labelExtractors"]) == {"status"}


def test_a_repetition_is_such_as_the_service_takes_it_and_its_rights_are_known() -> None:
    types = {asked.type for asked in repeated().cloud.asked if asked.type.startswith("gcp:")}
    assert types <= set(deploying.permissions())
    own = {token for token, row in deploying.permissions().items() if row.of == "jobs"}
    assert own - types == {"gcp:iap/settings:Settings"}, "of a client of OAuth, which this stack has not"
    broken = [
        (asked.name, rule.id, violation)
        for asked in repeated().cloud.asked
        if asked.type.startswith("gcp:")
        for rule, violation in BOOK.broken_alone(asked.type, dict(asked.properties))
        # Ids are names here; tests.stacks.google_judge has such as these rules judge.
        if not rule.id.startswith(("GCP-PROVIDER-", "GCP-KMS-014"))
    ]
    assert broken == []
    names = {one["service"] for one in repeated().all("projects/service:Service").values()}
    assert names - {one["service"] for one in made().all("projects/service:Service").values()} == {
        "cloudscheduler.googleapis.com"
    }
    priced = cost.estimate(
        stack_spec(PAIR, lambda spec: spec["smoke"].update({"schedule": "0 5 * * 1"})), DAY
    )
    assert "a job of Cloud Scheduler" in {use.name for use in priced.not_priced}
    assert any(use.name.startswith("validations (2 x g2-standard-8, at most") for use in priced.uses)
