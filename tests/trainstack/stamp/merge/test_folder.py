"""Merge of a client's folder: files that one side deleted, renamed, added or replaced."""

from pathlib import Path

import pytest

from infra.errors import UserError
from trainstack.stamp.merge import Labels
from trainstack.stamp.merge.folder import FolderMerge, KeepReason, merged_folder

LABELS = Labels()
LONG = "".join(f"line {number}\n" for number in range(20))


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)


def changes(found: FolderMerge) -> dict[str, str | None]:
    return found.changes(LABELS)


def test_files_without_edits_follow_the_template(tmp_path: Path) -> None:
    write(tmp_path, a="1\n", b="1\n", gone="x\n", own="mine\n")
    found = merged_folder(
        tmp_path, {"a": "1\n", "b": "1\n", "gone": "x\n"}, {"a": "2\n", "b": "1\n", "new": "n\n"}
    )
    assert changes(found) == {"a": "2\n", "gone": None, "new": "n\n"}
    assert not found.kept and not found.conflicts


def test_a_deleted_file_stays_deleted_and_a_change_of_it_is_named(tmp_path: Path) -> None:
    found = merged_folder(tmp_path, {"a": "1\n", "b": "1\n"}, {"a": "2\n", "b": "1\n"})
    assert changes(found) == {}
    assert {name: one.reason for name, one in found.kept.items()} == {"a": KeepReason.DELETED}
    assert found.base == {"a": "2\n", "b": "1\n"}


def test_a_renamed_file_is_found(tmp_path: Path) -> None:
    write(tmp_path, other=LONG + "mine\n", unlike="x\n")
    found = merged_folder(tmp_path, {"a": LONG}, {"a": LONG + "new\n"})
    assert changes(found) == {}
    assert found.kept["a"].renamed_to == "other"


def test_a_new_file_of_the_template_leaves_that_of_the_client_alone(tmp_path: Path) -> None:
    write(tmp_path, new="mine\n", same="s\n")
    found = merged_folder(tmp_path, {}, {"new": "n\n", "same": "s\n"})
    assert changes(found) == {}
    assert found.kept["new"].reason is KeepReason.YOURS
    assert found.base == {"same": "s\n"}


def test_an_edited_file_that_the_template_drops_stays(tmp_path: Path) -> None:
    write(tmp_path, a="mine\n")
    found = merged_folder(tmp_path, {"a": "1\n"}, {})
    assert changes(found) == {}
    assert found.kept["a"].reason is KeepReason.DROPPED


def test_both_sides_of_a_text_are_merged_by_lines_and_conflicts_have_places(tmp_path: Path) -> None:
    base = "".join(f"{number}\n" for number in range(9))
    write(tmp_path, a=base.replace("1\n", "mine\n").replace("7\n", "7\nmore\n"))
    found = merged_folder(tmp_path, {"a": base}, {"a": base.replace("4\n", "4\nnew\n")})
    assert changes(found) == {"a": "0\nmine\n2\n3\n4\nnew\n5\n6\n7\nmore\n8\n"}
    found = merged_folder(tmp_path, {"a": base}, {"a": "top\n" + base.replace("1\n", "theirs\n")})
    (conflict,) = found.conflicts["a"].conflicts
    assert (conflict.line, conflict.template_line) in {(2, 3), (1, 1)}
    assert "mine\n" in conflict.yours and "theirs\n" in conflict.template
    text = found.files["a"]
    assert text and text.text(LABELS).count("<<<<<<< yours\n") == 1


def test_line_ends_of_windows_are_no_edits(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\r\n2\r\n")
    assert changes(merged_folder(tmp_path, {"a": "1\n2\n"}, {"a": "1\n3\n"})) == {"a": "1\n3\n"}
    assert changes(merged_folder(tmp_path, {"a": "1\n2\n"}, {"a": "1\n2\n"})) == {}


def test_a_file_without_a_last_line_feed_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, a="mine")
    assert changes(merged_folder(tmp_path, {"a": "1\n"}, {"a": "1\n"})) == {}


@pytest.mark.parametrize("kind", ["link", "folder", "below a file", "below a link", "binary"])
def test_what_is_no_text_file_of_the_folder_is_refused(kind: str, tmp_path: Path) -> None:
    folder, elsewhere, name = tmp_path / "acme", tmp_path / "elsewhere", "a"
    folder.mkdir()
    elsewhere.mkdir()
    if kind == "link":
        (folder / "a").symlink_to(elsewhere / "a")
    elif kind == "folder":
        (folder / "a").mkdir()
    elif kind == "below a file":
        write(folder, d="x")
        name = "d/a"
    elif kind == "below a link":
        (folder / "d").symlink_to(elsewhere)
        name = "d/a"
    else:
        (folder / "a").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError) as refused:
        merged_folder(folder, {}, {name: "n\n"})
    assert {one.code for one in refused.value.problems} <= {
        "client-file-not-regular",
        "client-file-unreadable",
    }
