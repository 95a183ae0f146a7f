"""Writes through links and into what is no regular file."""

from pathlib import Path

from smoke_training import files


def test_a_link_is_followed_and_its_target_replaced_at_once(tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "result", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(target)
    files.write_durably(link, b"one")
    before = target.stat().st_ino
    files.write_durably(link, b"two")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"two")
    assert target.stat().st_ino != before
    assert [path.name for path in target.parent.iterdir()] == ["result"]
    files.remove(link)
    assert (link.is_symlink(), target.exists()) == (True, False)


def test_a_device_is_written_into_and_stays() -> None:
    files.write_durably(Path("/dev/null"), b"anything")
    assert Path("/dev/null").is_char_device()
    assert not any(files.replaceable(Path(path)) for path in ("/dev/null", "/dev/stdout", "/proc/self/fd/1"))
    assert files.replaceable(Path("/dev/shm/none-yet"))
