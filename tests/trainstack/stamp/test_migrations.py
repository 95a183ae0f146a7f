"""Steps between forms of specs: the client's value moves with its key."""

from pathlib import Path

from packaging.version import Version

from trainstack.stamp import lock
from trainstack.stamp.lock import Stamp
from trainstack.stamp.migrations import STEPS, MigrationStep, migrated, pending, renamed
from trainstack.stamp.renewal import prepared

OLD = """\
config:
  trainstack:spec:
    # Why.
    layout: # of nodes
      idle_minutes: 30 # short
      zone: a
"""
NEW = OLD.replace("idle_minutes", "idle_after_minutes")
RENAME = MigrationStep(
    "idle-after-minutes", lock.installed(), renamed(("layout", "idle_minutes"), "idle_after_minutes")
)
FILE, LAYER = "Pulumi.acme-dev.yaml", "clients/acme.yaml"


def test_a_key_gets_its_new_name_with_value_and_comments() -> None:
    assert migrated(FILE, OLD, [RENAME]) == NEW
    assert migrated(LAYER, "layout:\n  idle_minutes: 5\n", [RENAME]) == "layout:\n  idle_after_minutes: 5\n"
    for text in (NEW, "config: {}\n", "no: yaml: at all\n", ""):
        assert migrated(FILE, text, [RENAME]) == text
    assert migrated("README.md", OLD, [RENAME]) == OLD


def test_steps_are_those_between_two_versions() -> None:
    steps = [MigrationStep(name, name, renamed(("a",), "b")) for name in ("0.2.0", "0.3.0", "0.10.0")]
    assert [one.name for one in pending("0.2.0", "0.10.0", steps)] == ["0.3.0", "0.10.0"]
    assert pending("0.10.0", "0.10.0", steps) == []


def test_every_step_has_a_name_of_its_own_and_a_version_in_order() -> None:
    assert len({one.name for one in STEPS}) == len(STEPS)
    versions = [Version(one.version) for one in STEPS]
    assert versions == sorted(versions)
    assert all(version <= Version(lock.installed()) for version in versions)


def test_an_edited_value_moves_with_its_key_also_in_files_of_the_client(tmp_path: Path) -> None:
    stamp = Stamp("0.0.9", {}, {FILE: OLD})
    own = "Pulumi.acme-stage.yaml"
    edited = OLD.replace("30 # short", "99 # ours")
    for name, text in {**lock.files(stamp), FILE: edited, own: edited}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    template = NEW.replace("zone: a", "zone: b")
    found = prepared(tmp_path, lambda _: {FILE: template}, steps=[RENAME])
    assert [one.name for one in found.steps] == ["idle-after-minutes"]
    assert found.changes == {
        FILE: template.replace("30 # short", "99 # ours"),
        own: NEW.replace("30 # short", "99 # ours"),
    }
    found.write(tmp_path)
    assert prepared(tmp_path, lambda _: {FILE: template}, steps=[RENAME]).is_current
