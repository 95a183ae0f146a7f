"""Two projects of one name never share a state."""

from pathlib import Path

import pytest

from infra.errors import UserError
from rehearsal.client import Rehearsal
from rehearsal.projects import homes, run
from rehearsal.projects.project import PulumiProject, read
from rehearsal.projects.workspace import of_project

CACHE = Path(__file__).resolve().parents[3] / ".trainstack" / "cache"
UP = ("up", "--yes", "--skip-preview")


def project(folder: Path, program: str = "") -> PulumiProject:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    (folder / "__main__.py").write_text(program)
    return read(folder)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of homes, instead of that of this checkout."""
    monkeypatch.setattr(homes, "HOME", tmp_path)
    monkeypatch.delenv("TRAINSTACK_REHEARSAL_HOME", raising=False)
    CACHE.mkdir(parents=True, exist_ok=True)
    (tmp_path / "rehearsals").mkdir()
    (tmp_path / "rehearsals" / "cache").symlink_to(CACHE)
    return tmp_path / "rehearsals"


def test_a_project_cannot_destroy_resources_of_another_with_its_name(local: Path, tmp_path: Path) -> None:
    program = "import pulumi_aws as aws\naws.ec2.Vpc('net', cidr_block='10.0.0.0/16', region='us-east-1')\n"
    first, second = project(tmp_path / "a" / "infra", program), project(tmp_path / "b" / "infra", program)
    options = run.Options(settings=["aws:region=us-east-1"])
    assert run.run(first.folder, options, UP) == 0
    assert run.run(second.folder, options, ["destroy", "--yes", "--skip-preview"]) == 0
    assert homes.of_project(first).count("::infra::") == 1
    assert homes.of_project(second).count("::infra::") == 0
    for one in (first, second):
        homes.of_project(one).stop()


def test_a_home_that_was_named_after_its_project_is_used_on_by_that_project_only(
    local: Path, tmp_path: Path
) -> None:
    first, second = project(tmp_path / "a" / "infra"), project(tmp_path / "b" / "infra")
    former = local / "infra" / "projects" / "infra"
    former.mkdir(parents=True)
    (former / "Pulumi.yaml").write_text(f"name: infra\nruntime: python\nmain: {first.folder}\n")
    assert homes.of_project(first).home == local / "infra"
    assert homes.of_project(second).home.name.startswith("infra-")
    assert len(homes.claim(first, homes.of_project(first))[1]) == 1  # the note that the home is reserved
    assert homes.claim(first, homes.of_project(first))[1] == []
    assert homes.of_project(first).home == local / "infra"


def test_a_shared_home_refuses_a_second_project_of_one_name_and_follows_one_that_moved(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINSTACK_REHEARSAL_HOME", str(rehearsal.home))
    first, second = project(tmp_path / "a" / "infra"), project(tmp_path / "b" / "infra")
    homes.claim(first, rehearsal)
    with pytest.raises(UserError) as caught:
        of_project(second, "dev", rehearsal, "pulumi")
    assert caught.value.codes == (("rehearsal-home-taken", "DIR"),)
    moved = first.folder.rename(tmp_path / "moved")
    assert str(first.folder) in homes.claim(read(moved), rehearsal)[1][0]
