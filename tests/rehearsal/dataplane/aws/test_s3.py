"""The real boto3 against the S3 of a rehearsal, and requests that boto3 sends elsewhere only."""

import base64
import http.client
import importlib
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.state import State
from rehearsal.dataplane.aws.server import Dataplane

boto3: Any = importlib.import_module("boto3")
_errors: Any = importlib.import_module("botocore.exceptions")
_config: Any = importlib.import_module("botocore.config")
ClientError: type[Exception] = _errors.ClientError
REGION = "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/reader"


class Storage:
    """Two buckets behind a port."""

    def __init__(self, home: Path) -> None:
        self.home, self.state = home, State(home / "state.sqlite")
        self.plane = Dataplane(self.state)
        for name in ("data", "more"):
            self.add("aws:s3/bucket:Bucket", name, {})

    def add(self, token: str, name: str, inputs: dict[str, Any], /, **outputs: Any) -> None:
        self.state.insert(
            package="aws", type=token, scope=f"123456789012/{REGION}", id=name, urn=name, name=name,
            inputs=inputs, outputs=outputs,
        )  # fmt: skip

    def client(self, endpoint: str = "", **keys: str) -> Any:
        given = keys or {"aws_access_key_id": "rehearsal", "aws_secret_access_key": "rehearsal"}
        once = _config.Config(retries={"total_max_attempts": 1})
        return boto3.client(
            "s3", region_name=REGION, endpoint_url=endpoint or self.plane.url, config=once, **given
        )

    def as_role(self, *statements: dict[str, Any]) -> Any:
        """A client with the credentials of a role with these rights."""
        trust = {"Effect": "Allow", "Principal": {"Service": "x.amazonaws.com"}, "Action": "sts:AssumeRole"}
        policies = [{"policy": json.dumps({"Statement": list(statements)})}]
        inputs = {"assumeRolePolicy": json.dumps({"Statement": trust}), "inlinePolicies": policies}
        self.add("aws:iam/role:Role", "reader", inputs, arn=ROLE, name="reader")
        token = self.plane.identities.role_token(ROLE, "me", "x.amazonaws.com", self.home)
        keys = self.plane.identities.credentials(token.read_text())
        return self.client(
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["Token"],
        )

    def send(self, method: str, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
        """A request that is written by hand."""
        connection = http.client.HTTPConnection(self.plane.url.removeprefix("http://"))
        scope = f"Credential=rehearsal/20260101/{REGION}/s3/aws4_request"
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Authorization": f"AWS4-HMAC-SHA256 {scope}", **given})
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    found = Storage(tmp_path)
    yield found
    found.plane.stop()
    found.state.close()


def code(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_an_object_is_a_file_of_the_bucket(storage: Storage) -> None:
    s3 = storage.client()
    put = s3.put_object(Bucket="data", Key="a/b c+ü.txt", Body=b"content")
    assert (storage.home / "s3" / "data" / "a" / "b c+ü.txt").read_bytes() == b"content"
    got = s3.get_object(Bucket="data", Key="a/b c+ü.txt")
    assert got["Body"].read() == b"content"
    assert got["ETag"] == put["ETag"]
    head = s3.head_object(Bucket="data", Key="a/b c+ü.txt")
    assert head["ContentLength"] == 7 and head["LastModified"] == got["LastModified"]
    assert s3.get_object(Bucket="data", Key="a/b c+ü.txt", Range="bytes=3-")["Body"].read() == b"tent"
    s3.delete_object(Bucket="data", Key="a/b c+ü.txt")
    s3.delete_object(Bucket="data", Key="a/b c+ü.txt")
    assert not (storage.home / "s3" / "data" / "a").exists()


def test_files_of_programs_are_objects(storage: Storage) -> None:
    file = storage.home / "s3" / "data" / "runs" / "1" / "model"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"weights")
    assert storage.client().get_object(Bucket="data", Key="runs/1/model")["Body"].read() == b"weights"


def test_errors_are_those_of_the_service(storage: Storage) -> None:
    s3 = storage.client()
    with pytest.raises(s3.exceptions.NoSuchKey):
        s3.get_object(Bucket="data", Key="nothing")
    with pytest.raises(s3.exceptions.NoSuchBucket):
        s3.put_object(Bucket="nothing", Key="a", Body=b"")
    calls: list[Callable[[], Any]] = [
        lambda: s3.head_object(Bucket="data", Key="no"),
        lambda: s3.head_bucket(Bucket="no"),
    ]
    for call in calls:
        with pytest.raises(ClientError) as missing:
            call()
        assert code(missing) == "404"
    with pytest.raises(ClientError) as unkept:
        s3.put_object(Bucket="data", Key="../../escape", Body=b"")
    assert code(unkept) in ("NotImplemented", "501")
    with pytest.raises(ClientError) as unknown:
        s3.get_bucket_policy(Bucket="data")
    assert code(unknown) == "NotImplemented"


def test_lists_in_pages_and_folders(storage: Storage) -> None:
    s3 = storage.client()
    for key in ("a", "b/1", "b/2", "b/c/3", "ba", "d&<e>/f g"):
        s3.put_object(Bucket="data", Key=key, Body=b"x")

    def keys(**asked: Any) -> list[str]:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="data", **asked)
        return [row["Key"] for page in pages for row in page.get("Contents", ())]

    assert keys() == ["a", "b/1", "b/2", "b/c/3", "ba", "d&<e>/f g"]
    assert keys(PaginationConfig={"PageSize": 2}) == keys()
    assert keys(Prefix="b/") == ["b/1", "b/2", "b/c/3"]
    assert keys(StartAfter="b/c/3") == ["ba", "d&<e>/f g"]
    found = s3.list_objects_v2(Bucket="data", Delimiter="/")
    assert [row["Prefix"] for row in found["CommonPrefixes"]] == ["b/", "d&<e>/"]
    assert [row["Key"] for row in found["Contents"]] == ["a", "ba"]
    assert found["KeyCount"] == 4
    assert keys(Prefix="nothing/") == []


def test_large_files_go_in_parts(storage: Storage, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 40_000)  # 10 MB: above boto3's limit for one part
    s3 = storage.client()
    s3.upload_file(str(source), "data", "large")
    s3.download_file("data", "large", str(target))
    assert target.read_bytes() == source.read_bytes()
    upload = s3.create_multipart_upload(Bucket="data", Key="never")["UploadId"]
    s3.upload_part(Bucket="data", Key="never", UploadId=upload, PartNumber=1, Body=b"x")
    s3.abort_multipart_upload(Bucket="data", Key="never", UploadId=upload)
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchUpload"):
        s3.upload_part(Bucket="data", Key="never", UploadId=upload, PartNumber=1, Body=b"x")
    assert not list((storage.home / "s3-uploads").iterdir())


def test_copies_and_deletions_of_many(storage: Storage) -> None:
    s3 = storage.client()
    s3.put_object(Bucket="data", Key="a b", Body=b"x")
    s3.copy_object(Bucket="more", Key="c", CopySource={"Bucket": "data", "Key": "a b"})
    assert s3.get_object(Bucket="more", Key="c")["Body"].read() == b"x"
    deleted = s3.delete_objects(Bucket="more", Delete={"Objects": [{"Key": "c"}, {"Key": "none"}]})
    assert [row["Key"] for row in deleted["Deleted"]] == ["c", "none"]


def test_the_bucket_in_the_name_of_the_host(storage: Storage) -> None:
    named = storage.plane.url.replace("127.0.0.1", "localhost")
    storage.client(named).put_object(Bucket="data", Key="k", Body=b"v")
    assert (storage.home / "s3" / "data" / "k").read_bytes() == b"v"
    status, body = storage.send("GET", "/k", None, Host=f"data.s3.{REGION}.amazonaws.com")
    assert (status, body) == (200, b"v")


def test_a_body_in_signed_chunks_with_a_trailer(storage: Storage) -> None:
    checksum = base64.b64encode(zlib.crc32(b"hello world").to_bytes(4, "big")).decode()
    headers = {
        "x_amz_content_sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "Content_Encoding": "aws-chunked",
        "x_amz_decoded_content_length": "11",
        "x_amz_trailer": "x-amz-checksum-crc32",
    }
    body = f"6\r\nhello \r\n5;chunk-signature=ab\r\nworld\r\n0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n"
    assert storage.send("PUT", "/data/one", body.encode(), **headers)[0] == 200
    assert (storage.home / "s3" / "data" / "one").read_bytes() == b"hello world"
    # The same in chunks of HTTP: an iterable has no length.
    assert storage.send("PUT", "/data/two", iter([body.encode()]), **headers)[0] == 200
    assert (storage.home / "s3" / "data" / "two").read_bytes() == b"hello world"
    wrong = body.replace(checksum, base64.b64encode(b"\0\0\0\0").decode())
    status, said = storage.send("PUT", "/data/three", wrong.encode(), **headers)
    assert status == 400 and b"BadDigest" in said
    status, said = storage.send("PUT", "/data/four", b"no chunk at all", **headers)
    assert status == 400 and b"IncompleteBody" in said
    assert not (storage.home / "s3" / "data" / "three").exists()


def test_a_role_does_what_its_policies_say(storage: Storage) -> None:
    storage.client().put_object(Bucket="data", Key="team/x", Body=b"1")
    listing = {
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": "arn:aws:s3:::data",
        "Condition": {"StringLike": {"s3:prefix": "team/*"}},
    }
    reading = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/team/*"}
    s3 = storage.as_role(listing, reading)
    assert s3.get_object(Bucket="data", Key="team/x")["Body"].read() == b"1"
    assert s3.list_objects_v2(Bucket="data", Prefix="team/")["KeyCount"] == 1
    calls: list[Callable[[], Any]] = [
        lambda: s3.list_objects_v2(Bucket="data"),
        lambda: s3.get_object(Bucket="data", Key="other"),
        lambda: s3.put_object(Bucket="data", Key="team/y", Body=b""),
        lambda: s3.delete_object(Bucket="data", Key="team/x"),
        lambda: s3.list_objects_v2(Bucket="does-not-exist"),
    ]
    for call in calls:
        with pytest.raises(ClientError) as denied:
            call()
        assert code(denied) == "AccessDenied"


def test_many_requests_on_one_connection_stay_apart(storage: Storage) -> None:
    s3 = storage.client()
    for number in range(20):
        with pytest.raises(ClientError):  # refused before the body is read
            s3.put_object(Bucket="nothing", Key="k", Body=b"x" * 10_000)
        s3.put_object(Bucket="data", Key=str(number), Body=str(number).encode())
    assert s3.get_object(Bucket="data", Key="19")["Body"].read() == b"19"
