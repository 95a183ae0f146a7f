"""Policy packs: all faults are reported at once, before an engine starts."""

from pathlib import Path

import pytest

from infra.engine.packs import Packs
from infra.errors import UserError


def test_paths_are_those_of_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack, program, config = tmp_path / "pack", tmp_path / "binary", tmp_path / "pack.json"
    pack.mkdir()
    (pack / "PulumiPolicy.yaml").write_text("runtime: python\n")
    program.touch(mode=0o755)
    config.write_text("{}")
    monkeypatch.chdir(tmp_path)
    packs = Packs.read([Path("pack"), Path("binary")], [Path("pack.json"), Path("pack.json")])
    assert packs.paths == (str(pack), str(program))
    assert packs.options == {
        "policy_packs": [str(pack), str(program)],
        "policy_pack_configs": [str(config), str(config)],
    }


def test_without_a_pack_there_is_nothing_to_ask() -> None:
    assert not Packs.read((), ())


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    configs = [tmp_path / name for name in ("broken.json", "list.json", "none.json")]
    with pytest.raises(UserError) as refused:
        Packs.read([tmp_path], configs)
    assert refused.value.codes == (
        ("pack-configs-mismatch", "--policy-pack-config"),
        ("not-a-policy-pack", "--policy-pack"),
        ("pack-config-not-json", "--policy-pack-config"),
        ("pack-config-not-object", "--policy-pack-config"),
        ("pack-config-not-readable", "--policy-pack-config"),
    )
