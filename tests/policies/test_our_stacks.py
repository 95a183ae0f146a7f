"""The shipped environments keep every rule, as the real engine previews them; nothing is waived.

tests/rehearsal/runs asks the same of the states that an `up` makes.
"""

import fnmatch
import functools
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.configuration import read
from policies.rules import CATALOG
from policies.sources import preview
from rehearsal.client import Rehearsal
from tests.policies.mutants.mutation import fates
from tests.policies.pack.engine_rows import of_engine, verdicts_of_audit, verdicts_of_pack
from tests.rehearsal.runs import life
from tests.rehearsal.runs.life import ROOT, native, trainstack

CONFIGURATION = ROOT / "stacks" / "audit.yaml"
MUTANTS = Path(__file__).parent / "mutants"

# Rules that are undetermined in a preview, with the reason; not in a state.
_OPEN = {
    "MLS-REP-04": "the validation has not run",
    "MLS-TRK-04": "addresses of database and secrets, and the id of the watched Job, are not known yet",
}
OPEN = {
    "dev-aws": {
        **_OPEN,
        "MLS-IAM-01": "policies name buckets, secrets and the topic, which have no ARN yet",
        "MLS-IAM-04": "trust is for one cluster, which has no ARN yet",
        "MLS-K8S-12": "the settings of the device plugin are named by nodes, which are not known yet",
    },
    "dev-gcp": _OPEN,
    "prod-gcp": _OPEN,
}


@dataclass(frozen=True)
class Shipped:
    """A stack that is shipped, in a home of its own."""

    stack: str
    home: Path

    @property
    def judging(self) -> tuple[str, ...]:
        """As its file says, it is judged."""
        return "--config", str(CONFIGURATION), "--environment", self.stack

    @functools.cached_property
    def previews(self) -> tuple[Path, Path]:
        """A preview as a document, and as events under the policy pack, which finds no violation either."""
        digest = self._file("preview.json")
        command = ("preview", "--stack", self.stack, "--json", "--show-sames")
        done = native(self.home, *command, f"> {digest}", stack=self.stack)
        assert done.returncode == 0, done.stderr
        events = self._file("events.jsonl")
        events.write_text(life.events_under_pack(self.home, self.stack))
        return digest, events

    @functools.cache  # noqa: B019 - three stacks, and each audit takes seconds
    def judged(self, source: str, file: Path) -> Any:
        """What an audit says of a file."""
        done = trainstack(self.home, "audit", source, str(file), *self.judging, "--format", "json")
        assert done.stderr == ""
        return json.loads(done.stdout)

    def _file(self, name: str) -> Path:
        return self.home.parent / f"{self.stack}-{name}"


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Shipped]]:
    kept: dict[str, tuple[Shipped, Iterator[Path]]] = {}

    def of(stack: str) -> Shipped:
        if stack not in kept:
            started = life.home(tmp_path_factory.mktemp(stack))
            kept[stack] = Shipped(stack, next(started)), started
        return kept[stack][0]

    yield of
    for _, started in kept.values():
        next(started, None)


# Of stacks on GKE, the life of small-gke-gcp audits the state.
@pytest.fixture(
    params=["dev-aws", *(pytest.param(one, marks=pytest.mark.more) for one in ("dev-gcp", "prod-gcp"))]
)
def shipped(request: pytest.FixtureRequest, homes: Callable[[str], Shipped]) -> Shipped:
    return homes(request.param)


@pytest.fixture
def home(homes: Callable[[str], Shipped]) -> Path:
    return homes("dev-aws").home


def results(found: Any) -> dict[str, int]:
    return Counter(one["result"] for one in found["outcomes"])


def reported(found: Any, result: str) -> list[str]:
    return [
        f"{one['rule']} {one.get('name')}: {one['message']}"
        for one in found["outcomes"]
        if one["result"] == result
    ]


def test_every_rule_holds_in_the_document_of_a_preview(shipped: Shipped) -> None:
    found = shipped.judged("--preview", shipped.previews[0])
    assert reported(found, "fail") == [] and reported(found, "waived") == []
    assert {line.split()[0] for line in reported(found, "undetermined")} == OPEN[shipped.stack].keys()
    assert found["exit_code"] == 4
    assert found["rules"].keys() == CATALOG.rules.keys()
    assert found["resources"] > 200


def test_nothing_is_switched_off_or_advisory(shipped: Shipped) -> None:
    found = read(CONFIGURATION, CATALOG.rules, environment=shipped.stack)
    assert found.enforcement == {}


def test_events_have_fewer_outcomes_and_no_other(shipped: Shipped) -> None:
    whole, less = (shipped.judged("--preview", file) for file in shipped.previews)
    assert less["resources"] == whole["resources"]
    assert results(less).keys() == {"pass", "not-applicable", "undetermined"}
    assert results(less)["pass"] < results(whole)["pass"]


def test_the_policy_pack_has_the_same_outcomes(shipped: Shipped) -> None:
    reported = verdicts_of_pack(of_engine(shipped.previews[1].read_text().splitlines()))
    assert reported == verdicts_of_audit(shipped.judged("--preview", shipped.previews[0]))


def test_an_up_that_a_policy_forbids_makes_nothing(home: Path) -> None:
    done = _up_under(home, ROOT / "policies", {"settings": {"max_usd_per_hour": 1}}, stack="dev-aws")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "mandatory, critical-stack\n      MLS-COST-02: All pools at their maximum size" in done.stdout
    assert "MLS-IAM-04: undetermined" in done.stdout
    assert done.stdout.endswith("  Nothing was changed.\n") and done.stderr == ""
    assert not any(Rehearsal(home).status()["resources"].values())


def test_a_pack_that_cannot_be_asked_ends_an_up_before_it_begins(home: Path) -> None:
    broken = home.parent / "broken"
    broken.mkdir()
    (broken / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (broken / "__main__.py").write_text("raise SystemExit('it has no rules')")
    for pack, why in ((broken, "it has no rules"), (ROOT / "policies", "settings.colour")):
        done = _up_under(home, pack, {"settings": {"colour": "red"}}, stack="small-aws")
        output = done.stdout + done.stderr
        assert done.returncode == 2, output
        assert why in output and "Nothing was changed." in output and "Traceback" not in output
        assert str(pack) not in " ".join(life.processes(home))
    assert not any(Rehearsal(home).status()["resources"].values())


def _up_under(home: Path, pack: Path, audit: Any, *, stack: str) -> life.Done:
    """`trainstack up` under a pack, with the configuration of an audit."""
    (home.parent / "audit.yaml").write_text(json.dumps(audit))
    config = home.parent / "pack.json"
    config.write_text(json.dumps({"audit": {"config": str(home.parent / "audit.yaml")}}))
    words = ("--yes", "--policy-pack", str(pack), "--policy-pack-config", str(config))
    return life.do(home, "up", *words, stack=stack)


@pytest.mark.parametrize(
    ("stack", "survivors", "least"),
    [("dev-aws", "aws", 300), pytest.param("prod-gcp", "gcp", 150, marks=pytest.mark.more)],
)
def test_mutants_are_detected_or_have_a_reason(
    homes: Callable[[str], Shipped], stack: str, survivors: str, least: int
) -> None:
    resources = preview.read(homes(stack).previews[0])
    settings = read(CONFIGURATION, CATALOG.rules, environment=stack).settings
    found = fates(resources, CATALOG.rules, settings)
    assert len(found.reported) >= least
    reasons = tomllib.loads((MUTANTS / f"survivors.{survivors}.toml").read_text())["survivors"]
    argued = [pattern for reason in reasons for pattern in reason["mutants"] if reason["why"]]
    assert {name for name in found.survived if not matching(name, argued)} == set()
    assert [one for one in argued if not any(matching(name, [one]) for name in found.survived)] == []


def matching(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
