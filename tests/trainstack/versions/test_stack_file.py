"""Versions are written into a stack file, and nothing else of it changes."""

import datetime
from pathlib import Path

from infra import stackspec
from infra.stackspec.aws.cloud import AwsSpec
from trainstack.versions.stack_file import update

DAY = datetime.date(2026, 11, 23)
SHIPPED = Path(__file__).resolve().parents[3] / "stacks" / "config" / "Pulumi.dev-aws.yaml"


def copied(folder: Path) -> Path:
    path = folder / SHIPPED.name
    path.write_text(SHIPPED.read_text())
    return path


def test_pins_are_added_with_their_day_and_every_other_line_stays(tmp_path: Path) -> None:
    path = copied(tmp_path)
    before = path.read_text().splitlines()
    update(path, {"coredns": "v1.14.2-eksbuild.5"}, "1.36.7-20261101", DAY)
    after = path.read_text().splitlines()
    added = [line.strip() for line in after if line not in before]
    assert added == [
        "addon_versions:",
        "coredns: v1.14.2-eksbuild.5 # newest on 2026-11-23, by trainstack versions",
        "node_image: 1.36.7-20261101 # newest on 2026-11-23, by trainstack versions",
    ]
    assert [line for line in before if line not in after] == []
    on = stackspec.load_file("dev-aws", tmp_path).spec.on
    assert isinstance(on, AwsSpec)
    assert on.addon_versions == {"coredns": "v1.14.2-eksbuild.5"} and on.node_image == "1.36.7-20261101"


def test_a_second_update_replaces_the_first(tmp_path: Path) -> None:
    path = copied(tmp_path)
    update(path, {"coredns": "v1.14.2-eksbuild.5"}, None, DAY)
    once = path.read_text()
    update(path, {"coredns": "v1.14.2-eksbuild.6"}, None, DAY)
    assert path.read_text() == once.replace("eksbuild.5", "eksbuild.6")


def test_the_minor_version_of_kubernetes_is_text_and_every_other_line_stays(tmp_path: Path) -> None:
    path = copied(tmp_path)
    before = path.read_text().splitlines()
    update(path, {}, None, DAY, kubernetes="1.40")
    added = [line.strip() for line in path.read_text().splitlines() if line not in before]
    assert added == ['kubernetes_version: "1.40" # next minor version on 2026-11-23, by trainstack versions']
    assert [line for line in before if line not in path.read_text().splitlines()] == []
