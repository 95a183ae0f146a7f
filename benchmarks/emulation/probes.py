"""Probes of the rehearsal: inputs that a cloud refuses or accepts, and changes that are no difference.

    .venv/bin/python benchmarks/emulation/probes.py [aws|gcp|kubernetes ...] [--round 1|2|3|4|5] [--shown 400]

The rows beside this file have the expected results, by the sources that they name. A refused probe counts
as right if its base is accepted and the base with its change is refused; a pair counts as right if the second
program shows no difference. The last line of each cloud has the rates.
"""

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from rehearsal.core.model import InitFailedError, RefusalError  # noqa: E402
from rehearsal.core.schema import Schemas  # noqa: E402
from rehearsal.core.state import State  # noqa: E402
from rehearsal.gcp import iam_delay  # noqa: E402
from rehearsal.kubernetes.cloud import KubernetesCloud  # noqa: E402
from tests.rehearsal.aws.rules.bases import BASES  # noqa: E402
from tests.rehearsal.aws.rules.furnish import furnish  # noqa: E402
from tests.rehearsal.aws.rules.world import Example, World  # noqa: E402
from tests.rehearsal.driver import CACHE, Driver  # noqa: E402
from tests.rehearsal.gcp import harness as google  # noqa: E402
from tests.rehearsal.kubernetes.harness import ARN, ENDPOINT, Rehearsed  # noqa: E402
from tests.rehearsal.kubernetes.rules.building import but  # noqa: E402

HERE = Path(__file__).parent
CLOUDS = ("aws", "gcp", "kubernetes")
Changes = dict[str, Any]


@dataclass(frozen=True)
class Probe:
    """Changes to a base, and whether the cloud accepts the result."""

    base: str
    changes: Changes
    accepted: bool
    source: str


@dataclass(frozen=True)
class Pair:
    """Changes to a base that, taken away (`left_out`) or added (`own`), are no difference."""

    base: str
    kind: str
    changes: Changes


def probes(cloud: str, round_: int) -> list[Probe]:
    """The probes of a cloud in a round, in the order of its file."""
    return [
        Probe(row.get("base") or row["type"], changes, word == "accept", row["source"])
        for row in _document(cloud)["of"]
        if row.get("round", 1) == round_
        for word in ("refuse", "accept")
        for changes in row[word]
    ]


def pairs(cloud: str, round_: int) -> list[Pair]:
    """The pairs of a cloud in a round."""
    document = _document("pairs")
    found = {1: document, 2: document["second"]}.get(round_, {}).get(cloud, {})
    return [
        Pair(base, kind, {path: value})
        for base, kinds in found.items()
        for kind, changes in kinds.items()
        for path, value in changes.items()
    ]


def _document(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


class Emulation:
    """An emulated cloud: `inputs` of a base with changes, and the driver that gets them."""

    def __init__(self, driver: Driver, inputs: Callable[[str, Changes], tuple[str, dict[str, Any]]]) -> None:
        self._driver, self._inputs, self._made = driver, inputs, 0

    def refusal(self, base: str, changes: Changes) -> str:
        """What is said against a base with changes; nothing if it is accepted."""
        token, inputs = self._inputs(base, changes)
        self._made += 1
        name = f"probe-{self._made}"
        found = self._driver.check(token, name, **inputs)
        if found:
            return "; ".join(f"{path}: {reason}" for path, reason in found.items())
        call = self._driver.call(f"{self._driver.package}:{token}", name)
        checked, _ = self._driver.cloud.check(call, None, inputs)
        try:
            self._driver.cloud.create(call, checked, preview=True)
        except RefusalError as error:
            return str(error)
        return ""

    def difference(self, pair: Pair) -> str:
        """The properties that a pair changes."""
        self._made += 1
        name = f"pair-{self._made}"
        token, with_ = self._inputs(pair.base, pair.changes)
        _, without = self._inputs(pair.base, dict.fromkeys(pair.changes))
        for one in (with_, without):
            if "name" in one:
                one["name"] += f"{self._made}"  # names that are taken for days after a deletion
        old, new = (with_, without) if pair.kind == "left_out" else (without, with_)
        for inputs in (old, new):
            if refused := self._driver.check(token, name, **inputs):
                return f"nothing: it is refused: {refused}"
        try:
            self._driver.create(token, name, **old)
        except RefusalError as error:
            return f"nothing: it is refused: {error}"
        try:
            found = self._driver.diff(name, **new)
        finally:
            self._driver.delete(name)
        return f"replaces {found.replaces}" if found.replaces else ", ".join(found.changed)


class Cluster:
    """An emulated EKS cluster."""

    def __init__(self, folder: Path, schemas: Schemas) -> None:
        state = State(folder / "state.sqlite")
        self._rehearsed = Rehearsed(state, folder, KubernetesCloud(state, schemas, folder))
        outputs = {"name": "dev", "arn": ARN, "endpoint": ENDPOINT}
        self._rehearsed.aws("aws:eks/cluster:Cluster", "dev", {"name": "dev"}, outputs)
        self._rehearsed.cancelled.set()
        self._rehearsed.create("kubernetes:core/v1:Namespace", {"metadata": {"name": "lab"}}, "lab")
        self._bases, self._made = _document("kubernetes")["base"], 0

    def refusal(self, base: str, changes: Changes) -> str:
        """What is said against a base with changes; nothing if it is accepted."""
        self._made += 1
        row = self._bases[base]
        inputs, cloud = but(row["inputs"], changes), self._rehearsed.cloud
        call = self._rehearsed.call(f"kubernetes:{row['type']}", f"probe-{self._made}")
        checked, failures = cloud.check(call, None, inputs)
        if failures:
            return "; ".join(f"{failure.property}: {failure.reason}" for failure in failures)
        try:
            cloud.create(call, checked, preview=True)
        except InitFailedError:
            return ""
        except RefusalError as error:
            return str(error)
        return ""


def aws(folder: Path, schemas: Schemas) -> Emulation:
    """The account of the examples of rules."""
    world = World(folder, schemas)
    furnish(world)
    world.add("sqs/queue:Queue", "jobs", name="jobs")
    world.add("ec2/networkAcl:NetworkAcl", "acl", vpcId="$vpc")
    document = _document("aws")
    given = document["given"]
    BASES.update(document["base"])

    def inputs(base: str, changes: Changes) -> tuple[str, dict[str, Any]]:
        return base, _without(world.inputs(Example(base, "", {}), {**given.get(base, {}), **changes}))

    return Emulation(world, inputs)


def gcp(folder: Path, schemas: Schemas) -> Emulation:
    """A project with the world of the probes."""
    iam_delay.DELAY_S = 0.0
    driver, document = google.Driver(folder, schemas), _document("gcp")
    for index, row in enumerate(document["world"]):
        driver.create(row["type"], f"world-{index}", **row["inputs"])

    def inputs(base: str, changes: Changes) -> tuple[str, dict[str, Any]]:
        row = document["base"][base]
        return row["type"], _without(but(row["inputs"], changes))

    return Emulation(driver, inputs)


def _without(value: Any) -> Any:
    """A value without properties that are None, and without the blocks that only they were in."""
    if isinstance(value, list):
        return [_without(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: _without(one) for name, one in value.items() if one is not None}
    return {name: one for name, one in found.items() if one != {} or value[name] == {}}


_MAKERS: dict[str, Callable[[Path, Schemas], Emulation | Cluster]] = {
    "aws": aws,
    "gcp": gcp,
    "kubernetes": Cluster,
}


def judged(cloud: str, emulation: Emulation | Cluster, round_: int) -> Iterator[tuple[str, bool, str]]:
    """(kind, right, what differs) of each probe and pair of a cloud."""
    sound = set[str]()
    found = probes(cloud, round_)
    for base in dict.fromkeys(one.base for one in found):
        said = emulation.refusal(base, {})
        sound |= set() if said else {base}
        yield "base", not said, f"{base}: {said}"
    for one in found:
        said = emulation.refusal(one.base, one.changes)
        where = f"{one.base} {one.changes}"
        text = f"refused: {said}" if said else "accepted"
        yield (
            "accept" if one.accepted else "refuse",
            one.base in sound and one.accepted is (not said),
            f"{where}\n      {text}",
        )
    for pair in pairs(cloud, round_):
        assert isinstance(emulation, Emulation)
        differs = emulation.difference(pair)
        yield pair.kind, not differs, f"{pair.base} {pair.changes}\n      changes {differs}"


def main() -> None:
    """Print what differs from the expected results, and the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clouds", nargs="*", choices=CLOUDS, default=[])
    parser.add_argument("--round", type=int, choices=(1, 2, 3, 4, 5), default=1, dest="round_")
    parser.add_argument("--shown", type=int, default=400)
    options = parser.parse_args()
    for cloud in options.clouds or CLOUDS:
        schemas = Schemas(cloud, CACHE)
        with tempfile.TemporaryDirectory() as folder:
            made = _MAKERS[cloud](Path(folder), schemas)
            counts: dict[str, list[int]] = {}
            for kind, right, text in judged(cloud, made, options.round_):
                count = counts.setdefault(kind, [0, 0])
                count[0] += right
                count[1] += 1
                if not right:
                    print(f"  {kind}: {text[: options.shown]}")
        schemas.close()
        rates = (f"{kind} {right} of {all_}" for kind, (right, all_) in counts.items())
        print(f"{cloud}: {', '.join(rates)}", flush=True)


if __name__ == "__main__":
    main()
