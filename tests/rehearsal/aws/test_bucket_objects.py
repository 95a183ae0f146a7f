"""Objects of programs are files of the bucket, which S3, pods and jobs read."""

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.state import State
from rehearsal.core.validate import SIGNATURE
from rehearsal.dataplane.aws.s3.objects import Objects
from tests.rehearsal.driver import Driver

ASSET, ARCHIVE = "c44067f5952c0a294b673a41bacd8c17", "0def7320c3a5731c473e5ecbe6d01bc7"
TOKEN = "s3/bucketObjectv2:BucketObjectv2"


def read(state: State, key: str) -> bytes:
    return Objects(state).get("lake", key).path.read_bytes()


@pytest.mark.parametrize(
    "given",
    [{"content": "text"}, {"contentBase64": "dGV4dA=="}, {"source": {SIGNATURE: ASSET, "text": "text"}}],
)
def test_content_in_every_form(aws: Driver, given: dict[str, Any]) -> None:
    aws.create("s3/bucket:Bucket", "b", bucket="lake")
    aws.create(TOKEN, "o", bucket="lake", key="a/b", **given)
    assert read(aws.state, "a/b") == b"text"
    aws.update("o", bucket="lake", key="a/b", content="new")
    assert read(aws.state, "a/b") == b"new"
    aws.delete("o")
    assert Objects(aws.state).list("lake") == []
    aws.delete("b")


def test_an_archive_is_a_zip(aws: Driver, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from disk")
    parts = {
        "x/y": {SIGNATURE: ASSET, "text": "inside"},
        "z": {SIGNATURE: ASSET, "path": str(tmp_path / "file")},
    }
    aws.create("s3/bucket:Bucket", "b", bucket="lake")
    aws.create(TOKEN, "o", bucket="lake", key="code.zip", source={SIGNATURE: ARCHIVE, "assets": parts})
    with zipfile.ZipFile(io.BytesIO(read(aws.state, "code.zip"))) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == {
            "x/y": b"inside",
            "z": b"from disk",
        }


def test_a_missing_source_is_reported(aws: Driver) -> None:
    aws.create("s3/bucket:Bucket", "b", bucket="lake")
    aws.create(TOKEN, "o", bucket="lake", key="k", source={SIGNATURE: ASSET, "path": "/nowhere/at/all"})
    assert any("/nowhere/at/all" in said for said in aws.said)
    assert Objects(aws.state).list("lake") == []
