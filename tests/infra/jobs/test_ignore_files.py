"""Patterns of ignore files, held against git itself."""

import subprocess
from pathlib import Path

import pytest

from infra.jobs.ignore_files import ignored, read_patterns

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
    files = [read_patterns(text.splitlines())]

    def out(path: str) -> bool:
        parts = path.split("/")
        folders = ["/".join(parts[:end]) for end in range(1, len(parts))]
        return any(ignored(one, files, is_folder=True) for one in folders) or ignored(
            path, files, is_folder=False
        )

    assert [path for path in PATHS if out(path)] == checked.stdout.split()


def test_patterns_of_a_folder_are_about_that_folder() -> None:
    files = [read_patterns(["/x", "*.txt"], "sub")]
    assert ignored("sub/x", files, is_folder=False) and ignored("sub/deep/a.txt", files, is_folder=False)
    assert not ignored("x", files, is_folder=False) and not ignored("a.txt", files, is_folder=False)
