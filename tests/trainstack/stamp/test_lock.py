"""Lock and base of a client's folder: written, read back, refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from infra import installation, places
from infra.errors import UserError
from trainstack import extras
from trainstack.stamp import lock
from trainstack.stamp.lock import BASE, LOCK, Stamp

TEXTS = {"Pulumi.yaml": "name: acme\n", ".github/workflows/up.yml": "on: push\n", "README.md": "# é\n\nx"}
ANSWERS: dict[str, JsonValue] = {
    "name": "acme",
    "budget": 40000,
    "environments": ["dev", "prod"],
    "owner": "1.10",
    "region": None,
}


@pytest.fixture
def client(tmp_path: Path) -> Path:
    write(tmp_path, Stamp(lock.installed(), ANSWERS, TEXTS))
    return tmp_path


def write(folder: Path, stamp: Stamp) -> None:
    for name, text in lock.files(stamp).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def codes(folder: Path) -> set[str]:
    with pytest.raises(UserError) as refused:
        lock.read(folder)
    return {problem.code for problem in refused.value.problems}


def test_what_was_written_is_read_back_and_written_the_same(client: Path) -> None:
    found = lock.read(client)
    assert found == Stamp(lock.installed(), ANSWERS, TEXTS)
    assert lock.files(found) == lock.files(Stamp(lock.installed(), ANSWERS, TEXTS))


def test_line_ends_of_a_checkout_do_not_count(client: Path) -> None:
    for path in (client / LOCK, client / BASE / "README.md"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert lock.read(client).texts == TEXTS


def edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace(old, new))


def outside(folder: Path) -> None:
    (folder.parent / "elsewhere").write_text(TEXTS["README.md"])
    (folder / BASE / "README.md").unlink()
    (folder / BASE / "README.md").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda folder: (folder / LOCK).unlink(), "client-lock-missing"),
        (edit(LOCK, "format: 1", "format: 2"), "client-lock-newer-format"),
        (edit(LOCK, "format: 1\n", ""), "client-lock-invalid"),
        (edit(LOCK, "format: 1", "format: 1\nmore: 1"), "client-lock-invalid"),
        (edit(LOCK, "answers:", "<<<<<<< HEAD\nanswers:"), "client-lock-invalid"),
        (edit(LOCK, f"package: {lock.installed()}", "package: 99.0.0"), "client-lock-newer"),
        (edit(LOCK, f"package: {lock.installed()}", "package: latest"), "client-lock-invalid"),
        (edit(LOCK, "README.md:", "../README.md:"), "client-lock-invalid"),
        (edit(LOCK, "README.md:", "/README.md:"), "client-lock-invalid"),
        (edit(LOCK, "README.md:", ".git/config:"), "client-lock-invalid"),
        (lambda folder: (folder / LOCK).write_bytes(b"\xff"), "client-lock-invalid"),
        (lambda folder: (folder / LOCK).write_text(""), "client-lock-invalid"),
        (lambda folder: (folder / LOCK).write_text("- format: 1\n"), "client-lock-invalid"),
        (lambda folder: (folder / BASE / "README.md").unlink(), "client-base-missing"),
        (edit(f"{BASE}/README.md", "x", "y"), "client-base-edited"),
        (lambda folder: (folder / BASE / "more.yaml").write_text("a: 1\n"), "client-base-unknown"),
        (outside, "client-lock-invalid"),
    ],
)
def test_a_lock_that_cannot_be_trusted_is_refused(
    change: Callable[[Path], object], code: str, client: Path
) -> None:
    change(client)
    assert codes(client) == {code}


@pytest.mark.parametrize("old", ["package: ", "format: 1\npackage: "])
def test_a_newer_version_comes_from_where_this_one_came(
    old: str, client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "CHECKOUT", None)
    edit(LOCK, f"{old}{lock.installed()}", f"{old}99.0.0".replace("format: 1", "format: 2"))(client)
    with pytest.raises(UserError) as refused:
        lock.read(client)
    (problem,) = refused.value.problems
    assert installation.install_command(extras.installed(), "99.0.0") in problem.fix


def test_a_lock_of_an_older_version_is_read(client: Path) -> None:
    write(client, Stamp("0.0.9", ANSWERS, TEXTS))
    assert lock.read(client).version == "0.0.9"
