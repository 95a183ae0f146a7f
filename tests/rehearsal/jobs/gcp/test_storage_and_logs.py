"""Objects and log entries of the emulated Google Cloud, by its REST APIs."""

import base64
import hashlib

import pytest

from tests.rehearsal.jobs.gcp.conftest import ADA, PROJECT, TRAINER, Project

_O = "storage/v1/b/code-bucket/o"


def test_an_object_is_put_read_listed_and_deleted(project: Project) -> None:
    made = project.put("code-bucket", "a/b.txt", b"seven").json()
    assert (made["name"], made["size"]) == ("a/b.txt", "5")
    assert made["md5Hash"] == base64.b64encode(hashlib.md5(b"seven").digest()).decode()
    assert project.file("code-bucket", "a/b.txt").read_bytes() == b"seven"
    assert project.ask("GET", f"{_O}/a%2Fb.txt").json() == made
    assert project.ask("GET", f"{_O}/a%2Fb.txt?alt=media").content == b"seven"
    assert project.ask("DELETE", f"{_O}/a%2Fb.txt").status_code == 204
    gone = project.ask("GET", f"{_O}/a%2Fb.txt")
    assert gone.status_code == 404
    assert gone.json()["error"]["message"] == "No such object: code-bucket/a/b.txt"


def test_an_object_is_not_replaced_where_it_must_be_new(project: Project) -> None:
    path = "upload/storage/v1/b/code-bucket/o?uploadType=media&name=pack&ifGenerationMatch=0"
    assert project.ask("POST", path, data=b"one").ok
    again = project.ask("POST", path, data=b"two")
    assert (again.status_code, again.json()["error"]["errors"][0]["reason"]) == (412, "conditionNotMet")
    assert project.file("code-bucket", "pack").read_bytes() == b"one"


def test_uploads_of_two_parts(project: Project) -> None:
    body = (
        b"--x\r\nContent-Type: application/json\r\n\r\n" + b'{"name": "two"}' + b"\r\n--x\r\n"
        b"Content-Type: application/octet-stream\r\n\r\n\x00seven\r\n--x--\r\n"
    )
    import requests

    headers = {
        "Authorization": f"Bearer {project.operator()}",
        "Content-Type": 'multipart/related; boundary="x"',
    }
    url = f"{project.url}/upload/storage/v1/b/code-bucket/o?uploadType=multipart"
    assert requests.post(url, data=body, headers=headers, timeout=10).ok
    assert project.file("code-bucket", "two").read_bytes() == b"\x00seven"


def test_lists_have_folders_and_pages(project: Project) -> None:
    for name in ("a/1", "a/2", "a/b/3", "c"):
        project.put("code-bucket", name, b"x")
    found = project.ask("GET", f"{_O}?prefix=a/&delimiter=/").json()
    assert [one["name"] for one in found["items"]] == ["a/1", "a/2"] and found["prefixes"] == ["a/b/"]
    first = project.ask("GET", f"{_O}?maxResults=3").json()
    second = project.ask("GET", f"{_O}?maxResults=3&pageToken={first['nextPageToken']}").json()
    assert [one["name"] for one in (*first["items"], *second["items"])] == ["a/1", "a/2", "a/b/3", "c"]


def test_rights_are_those_of_bindings_also_of_folders(project: Project) -> None:
    project.put("code-bucket", "teams/a/1", b"x")
    project.put("code-bucket", "teams/b/1", b"x")
    bucket = project.state.find(type="gcp:storage/bucket:Bucket")[0]
    refused = project.ask("GET", f"{_O}/teams%2Fa%2F1", by=ADA)
    assert refused.status_code == 403 and "storage.objects.get" in refused.json()["error"]["message"]
    inputs = {
        "bucket": bucket.id,
        "managedFolder": "teams/a/",
        "role": "roles/storage.objectViewer",
        "member": f"serviceAccount:{ADA}",
    }
    binding = project.add("storage/managedFolderIamMember:ManagedFolderIamMember", "folder", inputs)
    project.state.refer(binding, {"bucket": bucket})
    assert project.ask("GET", f"{_O}/teams%2Fa%2F1", by=ADA).ok
    assert project.ask("GET", f"{_O}/teams%2Fb%2F1", by=ADA).status_code == 403
    assert project.put("code-bucket", "teams/a/2", b"x", by=ADA).status_code == 403


def test_a_creator_cannot_replace_objects(project: Project) -> None:
    project.grant("roles/storage.objectCreator", ADA)
    assert project.put("code-bucket", "pack", b"one", by=ADA).ok
    assert project.put("code-bucket", "pack", b"two", by=ADA).status_code == 403


def test_entries_come_in_pages_by_time(project: Project) -> None:
    name = project.run("for i in $(seq 25); do echo line $i; done")["name"]
    job = f'resource.labels.job_id="{name.rpartition("/")[2]}"'
    wanted = f'{job} AND resource.labels.task_name="workerpool0-0"'
    body = {"resourceNames": [f"projects/{PROJECT}"], "filter": wanted, "pageSize": 10}
    found, token = [], ""
    while True:
        page = project.ask("POST", "v2/entries:list", {**body, "pageToken": token}).json()
        found += page.get("entries", ())
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert [one["jsonPayload"]["message"] for one in found] == [f"line {i}" for i in range(1, 26)]
    assert len({one["insertId"] for one in found}) == 25
    after = found[9]["timestamp"]
    later = f' AND timestamp>"{after}" AND resource.labels.task_name:workerpool'
    assert len(project.entries(name, later)) == 15
    # Text would put "07.5Z" before "07Z".
    first, last = found[0]["timestamp"], found[-1]["timestamp"]
    of_replicas = " AND resource.labels.task_name:workerpool"
    assert len(project.entries(name, f'{of_replicas} AND timestamp>="{first[:19]}Z"')) == 25
    assert project.entries(name, f'{of_replicas} AND timestamp<"{first[:19]}Z"') == []
    assert len(project.entries(name, f'{of_replicas} AND timestamp<="{last.removesuffix("Z")}+00:00"')) == 25
    newest = project.entries(name, orderBy="timestamp desc", pageSize=1)
    assert newest[0]["resource"]["labels"]["task_name"] == "service"


def test_reading_entries_needs_a_right(project: Project) -> None:
    body = {"resourceNames": [f"projects/{PROJECT}"]}
    assert project.ask("POST", "v2/entries:list", body, by=ADA).status_code == 403
    project.grant("roles/logging.viewer", ADA)
    assert project.ask("POST", "v2/entries:list", body, by=ADA).json() == {}


@pytest.mark.parametrize("token", ["", "stranger"])
def test_requests_without_a_login_get_401(project: Project, token: str) -> None:
    import requests

    answer = requests.get(f"{project.url}/{_O}", headers={"Authorization": f"Bearer {token}"}, timeout=10)
    assert (answer.status_code, answer.json()["error"]["status"]) == (401, "UNAUTHENTICATED")


def test_the_login_of_the_rehearsal_is_one_that_googles_library_takes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infra.clouds.gcp import login as google_login
    from rehearsal import service_ports

    for key, value in service_ports.environment(project.home).items():
        monkeypatch.setenv(key, value)
    asking, _ = google_login.session(1)
    assert asking.get(f"{project.url}/{_O}", timeout=10).json() == {"kind": "storage#objects"}
    assert TRAINER  # the account of jobs is not who is logged in
