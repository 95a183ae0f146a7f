"""Patterns of ignore files, held against git itself."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.jobs.packing.folder import survey
from infra.jobs.packing.ignore_files import left_out_by, read_patterns
from infra.jobs.packing.opening import opened_folder

PATHS = ("a.log", "sub/a.log", "out/x", "sub/out/x", "sub/deep/b.txt", "data/c.bin", "data/keep/c.bin", "a#b")
FILES = (
    "*.log",
    "/a.log",
    "out/",
    "/out",
    "sub/*.log",
    "sub/**",
    "**/b.txt",
    "sub/**/b.txt",
    "data/*\n!data/keep",
    "*.log\n!a.log",
    "# nothing\n\n",
    "a?b",
    "[a-c].log",
    "\\#x",
    "sub/deep",
    "deep/",
    "!\n*.log",
    "!\\\n*.log",
    "a.log\\\nout/",
    "data/**\n!data/keep/\n!data/keep/c.bin",
    "data/**\n!data/**/\n!data/**/*.bin",
    "sub/**/\n!sub/deep/",
    "*\n!*/\n!*.txt",
    "/*\n!/sub\n/sub/*\n!/sub/deep",
    "*.log\n!sub/",
    "sub/**/out",
)


@pytest.mark.parametrize("text", FILES)
def test_a_plain_pattern_leaves_out_what_git_leaves_out(tmp_path: Path, text: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / ".gitignore").write_text(text)
    checked = subprocess.run(
        ["git", "-C", str(tmp_path), "check-ignore", *PATHS], capture_output=True, text=True, check=False
    )
    files = [read_patterns(text.encode())]

    def out(path: str) -> bool:
        parts = path.split("/")
        folders = ["/".join(parts[:end]) for end in range(1, len(parts))]
        return any(left_out_by(one, files, is_folder=True) for one in folders) or bool(
            left_out_by(path, files, is_folder=False)
        )

    assert [path for path in PATHS if out(path)] == checked.stdout.split()


def test_patterns_of_a_folder_are_about_that_folder() -> None:
    files = [read_patterns(b"/x\n*.txt", "sub")]
    assert left_out_by("sub/x", files, is_folder=False) and left_out_by(
        "sub/deep/a.txt", files, is_folder=False
    )
    assert not left_out_by("x", files, is_folder=False) and not left_out_by("a.txt", files, is_folder=False)


ATOMS = ("a", "b", "keep", "*.log", "*.txt", "data", "*", "**", "a*", "?", "[ab]", "x.log")
PATTERNS = st.builds(
    lambda before, parts, after: before + "/".join(parts) + after,
    st.sampled_from(["", "!", "/"]),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3),
    st.sampled_from(["", "/", "/**", " ", "\r"]),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("repository")
    for folder in ("", "a", "a/b", "data", "data/keep", "data/keep/a", "b", "keep"):
        (top / folder).mkdir(exist_ok=True)
        for name in ("x.log", "y.txt", "ab", "c"):
            (top / folder / name).touch()
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    return top


@settings(deadline=None, max_examples=60)
@given(top=st.lists(PATTERNS, min_size=1, max_size=5), inner=st.lists(PATTERNS, max_size=2))
def test_the_files_of_a_folder_are_those_of_git(repository: Path, top: list[str], inner: list[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(top))
    (repository / "data" / ".gitignore").write_text("\n".join(inner))
    listed = subprocess.run(
        ["git", "-C", str(repository), "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    )
    with opened_folder(os.fsencode(repository)) as root:
        assert set(survey(repository, root).files) == set(filter(None, listed.stdout.decode().split("\0")))
