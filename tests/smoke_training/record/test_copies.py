"""The second copy of a result: to a folder, to Cloud Storage over HTTP, or a reason why not."""

import importlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from moto import mock_aws

from smoke_training.record import copies, run_record
from tests.smoke_training.record.google_cloud import Answer, serving

boto3: Any = importlib.import_module("boto3")  # without type hints
FOLDER = "gs://dev-checkpoints/smoke"


@dataclass
class Storage:
    """Cloud Storage: the objects by name, and statuses that are answered first."""

    objects: dict[str, bytes] = field(default_factory=dict)
    refusals: list[int] = field(default_factory=list)

    def answer(self, path: str, body: bytes) -> Answer:
        if self.refusals:
            return self.refusals.pop(0), {"error": {"message": "refused"}}
        place = urlsplit(path)
        assert place.path == "/upload/storage/v1/b/dev-checkpoints/o"
        query = parse_qs(place.query, strict_parsing=True)
        assert query["uploadType"] == ["media"]
        self.objects[query["name"][0]] = body
        return 200, {"name": query["name"][0]}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    cloud = Storage()
    with serving(monkeypatch, "STORAGE_EMULATOR_HOST", cloud.answer):
        yield cloud


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A result with a summary and without a baseline, in the folder of its run."""
    path = tmp_path / "smoke-1" / "result.json"
    path.parent.mkdir()
    path.write_text('{"verdict": "FAIL"}')
    run_record.beside(path, run_record.SUMMARY).write_text("<p>FAIL</p>")
    return path


def soon() -> float:
    return time.monotonic() + 30


def test_what_there_is_goes_to_the_bucket_with_the_rights_of_the_node(storage: Storage, result: Path) -> None:
    message = copies.send(FOLDER, result, soon())
    assert message == {"copied": True, "copy": f"{FOLDER}/smoke-1/result.json", "reason": None}
    assert storage.objects == {
        "smoke/smoke-1/result.json": b'{"verdict": "FAIL"}',
        "smoke/smoke-1/result.html": b"<p>FAIL</p>",
    }


def test_a_name_is_no_further_question_of_the_request(storage: Storage, result: Path) -> None:
    renamed = result.parent.rename(result.parent.with_name("smoke&name=other"))
    assert copies.send(FOLDER, renamed / result.name, soon())["copied"] is True
    assert set(storage.objects) == {f"smoke/smoke&name=other/result.{kind}" for kind in ("json", "html")}


def test_a_busy_bucket_is_asked_once_more(storage: Storage, result: Path) -> None:
    storage.refusals = [503]
    assert copies.send(FOLDER, result, soon())["copied"] is True
    assert len(storage.objects) == 2


def test_a_missing_right_is_a_reason_and_no_exception(storage: Storage, result: Path) -> None:
    storage.refusals = [403]
    message = copies.send(FOLDER, result, soon())
    assert (
        message["copied"] is False
        and "status 403" in str(message["reason"])
        and "refused" in str(message["reason"])
    )
    assert storage.objects == {}


def test_a_folder_gets_the_same_files(result: Path, tmp_path: Path) -> None:
    message = copies.send(f"file://{tmp_path}/bucket/smoke", result, soon())
    assert message["copied"] is True
    copied = tmp_path / "bucket" / "smoke" / "smoke-1"
    assert {path.name for path in copied.iterdir()} == {"result.json", "result.html"}
    assert (copied / "result.json").read_bytes() == result.read_bytes()


@mock_aws
def test_s3_gets_the_same_files_and_a_missing_bucket_is_a_reason(
    result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    s3 = boto3.client("s3", "eu-central-1")
    place = {"LocationConstraint": "eu-central-1"}
    s3.create_bucket(Bucket="checkpoints", CreateBucketConfiguration=place)
    message = copies.send("s3://checkpoints/smoke", result, soon())
    assert message == {"copied": True, "copy": "s3://checkpoints/smoke/smoke-1/result.json", "reason": None}
    kept = s3.list_objects_v2(Bucket="checkpoints")["Contents"]
    assert [one["Key"] for one in kept] == ["smoke/smoke-1/result.html", "smoke/smoke-1/result.json"]
    body = s3.get_object(Bucket="checkpoints", Key="smoke/smoke-1/result.json")["Body"].read()
    assert body == result.read_bytes()
    lost = copies.send("s3://elsewhere/smoke", result, soon())
    assert lost["copied"] is False and "NoSuchBucket" in str(lost["reason"])


@pytest.mark.parametrize(
    ("folder", "left_s", "reason"),
    [("ftp://bucket/smoke", 30, "neither in S3"), (FOLDER, -1, "no time left")],
)
def test_what_cannot_be_copied_has_a_reason(result: Path, folder: str, left_s: float, reason: str) -> None:
    message = copies.send(folder, result, time.monotonic() + left_s)
    assert message["copied"] is False and reason in str(message["reason"])


def test_without_a_result_nothing_is_copied() -> None:
    assert copies.send(FOLDER, None, soon()) == {
        "copied": False,
        "copy": None,
        "reason": "there is no result to copy",
    }
