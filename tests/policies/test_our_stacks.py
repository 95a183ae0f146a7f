"""The shipped environment keeps every rule, as the real engine previews it; nothing is waived.

tests/rehearsal/runs/test_medium_stack.py asks the same of the state of a rehearsed deployment.
"""

import fnmatch
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.rules import CATALOGUE
from policies.settings import Settings
from policies.sources import preview
from rehearsal.client import Rehearsal
from tests.policies.mutants.mutation import fates
from tests.policies.pack.told import of_engine, verdicts_of_audit, verdicts_of_pack
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import ROOT, STACK, native, trainstack

SURVIVORS = Path(__file__).parent / "mutants" / "survivors.toml"

# Rules that a preview leaves open, with the reason; a state tells.
OPEN = {
    "MLS-IAM-01": "policies name buckets, secrets and the topic, which have no ARN yet",
    "MLS-IAM-04": "trust is for one cluster, which has no ARN yet",
    "MLS-IAM-06": "the ConfigMap of a schedule is named after its plan, which names the topic",
    "MLS-REP-04": "the validation has not run",
    "MLS-TRK-04": "addresses of database and secrets, and the id of the watched Job, are not known yet",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from life.home(tmp_path_factory.mktemp("policies"))


@pytest.fixture(scope="module")
def previews(home: Path) -> tuple[Path, Path]:
    """A preview as a document, and as events under the policy pack, which finds no violation either."""
    digest, events = home.parent / "preview.json", home.parent / "events.jsonl"
    command = ("preview", "--stack", STACK, "--json", "--show-sames")
    streaming = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true"
    judged = (*command, "--policy-pack", "policies", ">", str(events))
    done = native(home, *command, f"> {digest}\n{streaming} pulumi", *judged)
    assert done.returncode == 0, done.stderr
    return digest, events


def judged(home: Path, file: Path) -> Any:
    done = trainstack(home, "audit", "--preview", str(file), "--format", "json")
    assert done.stderr == ""
    return json.loads(done.stdout)


def results(found: Any) -> dict[str, int]:
    return Counter(one["result"] for one in found["outcomes"])


def told(found: Any, result: str) -> list[str]:
    return [
        f"{one['rule']} {one.get('name')}: {one['message']}"
        for one in found["outcomes"]
        if one["result"] == result
    ]


def test_every_rule_holds_in_the_document_of_a_preview(home: Path, previews: tuple[Path, Path]) -> None:
    found = judged(home, previews[0])
    assert told(found, "fail") == [] and told(found, "waived") == []
    assert {line.split()[0] for line in told(found, "undetermined")} == OPEN.keys()
    assert found["exit_code"] == (4 if OPEN else 0)
    assert found["rules"].keys() == CATALOGUE.rules.keys()
    assert found["resources"] > 300


def test_events_tell_less_and_nothing_else(home: Path, previews: tuple[Path, Path]) -> None:
    whole, less = judged(home, previews[0]), judged(home, previews[1])
    assert less["resources"] == whole["resources"]
    assert results(less).keys() == {"pass", "not-applicable", "undetermined"}
    assert results(less)["pass"] < results(whole)["pass"]


def test_the_policy_pack_tells_the_same(home: Path, previews: tuple[Path, Path]) -> None:
    told = verdicts_of_pack(of_engine(previews[1].read_text().splitlines()))
    assert told == verdicts_of_audit(judged(home, previews[0]))


def test_an_up_that_a_policy_forbids_makes_nothing(home: Path) -> None:
    done = _up_under(home, ROOT / "policies", {"settings": {"max_usd_per_hour": 1}})
    assert done.returncode == 3, done.stdout + done.stderr
    assert "mandatory, critical-stack\n      MLS-COST-02: All pools at their maximum size" in done.stdout
    assert "MLS-IAM-04: could not be judged" in done.stdout
    assert done.stdout.endswith("  Nothing was changed.\n") and done.stderr == ""
    assert not any(Rehearsal(home).status()["resources"].values())


def test_a_pack_that_cannot_be_asked_ends_an_up_before_it_begins(home: Path) -> None:
    broken = home.parent / "broken"
    broken.mkdir()
    (broken / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (broken / "__main__.py").write_text("raise SystemExit('it has no rules')")
    for pack, why in ((broken, "it has no rules"), (ROOT / "policies", "settings.colour")):
        done = _up_under(home, pack, {"settings": {"colour": "red"}})
        output = done.stdout + done.stderr
        assert done.returncode == 2, output
        assert why in output and "Nothing was changed." in output and "Traceback" not in output
        assert str(pack) not in " ".join(life.processes(home))
    assert not any(Rehearsal(home).status()["resources"].values())


def _up_under(home: Path, pack: Path, audit: Any) -> life.Done:
    """`trainstack up` under a pack, with the configuration of an audit."""
    (home.parent / "audit.yaml").write_text(json.dumps(audit))
    config = home.parent / "pack.json"
    config.write_text(json.dumps({"audit": {"config": str(home.parent / "audit.yaml")}}))
    return life.do(home, "up", "--yes", "--policy-pack", str(pack), "--policy-pack-config", str(config))


def test_what_is_made_worse_is_told_or_there_is_a_reason(previews: tuple[Path, Path]) -> None:
    found = fates(preview.read(previews[0]), CATALOGUE.rules, Settings())
    assert len(found.told) >= 300
    reasons = tomllib.loads(SURVIVORS.read_text())["survivors"]
    argued = [pattern for reason in reasons for pattern in reason["mutants"] if reason["why"]]
    assert {name for name in found.survived if not matching(name, argued)} == set()
    assert [one for one in argued if not any(matching(name, [one]) for name in found.survived)] == []


def matching(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
