"""Compares verdicts of the policies with those that checkov and trivy-checks state for their own examples.

    .venv/bin/python benchmarks/peers/agreement.py --checkov DIR --trivy DIR [--write] [--check ID]

DIR is a checkout, also one without a work tree; nothing is downloaded. Each example of Terraform is converted
(`conversion.py`) and judged by the rule that has the same subject as the peer's check (`subjects.toml`).
Verdicts that differ are argued in `argued/*.toml`. Others are printed as open, and arguments about verdicts
that did not occur as stale; the exit code is 1 then, and where a peer is right.
`--write` renews the table in `benchmarks/RESULTS.md`.

All rules are as in production; buckets of any name count as those of results and datasets, as peers know no
purpose of a bucket. Undetermined counts as a verdict that differs.
"""

import argparse
import collections
import datetime
import functools
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.peers import checkouts, hcl  # noqa: E402
from benchmarks.peers.checkouts import Example  # noqa: E402
from benchmarks.peers.conversion import Converted, Schema, convert  # noqa: E402
from benchmarks.peers.terraform import Module  # noqa: E402
from policies.catalog import PolicyRule  # noqa: E402
from policies.evaluate import RuleOutcome, evaluate  # noqa: E402
from policies.resource import Resource  # noqa: E402
from policies.rules import CATALOG  # noqa: E402
from policies.settings import RuleSettings  # noqa: E402
from policies.stack import Stack  # noqa: E402
from rehearsal.core.schema import Schemas  # noqa: E402

HERE = Path(__file__).parent
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
_BEGIN, _END = "<!-- peers: begin -->", "<!-- peers: end -->"
SETTINGS = RuleSettings(
    today=datetime.date(2026, 11, 29), production=True, result_words=("",), dataset_words=("",)
)
RIGHT = ("ours", "peer", "scope")


@dataclass(frozen=True)
class Subject:
    """The part of a rule that has the subject of a peer's check."""

    peer: str
    check: str
    rule: str
    path: str
    """Pattern of the paths of violations that are about it."""
    why: str
    message: str = ""
    """Pattern of the messages of violations that are about it."""
    other: str = ""
    """Pattern of the reasons for undetermined results of other parts of the rule; empty if there are none."""


@dataclass(frozen=True)
class Argument:
    """Verdicts that differ, and who is right: `ours`, `peer`, or `scope` where the subject is another one."""

    peer: str
    check: str
    example: str
    resources: tuple[str, ...]
    ours: str
    right: str
    why: str
    source: str


@dataclass(frozen=True)
class Compared:
    """An example with both verdicts."""

    example: Example
    ours: str
    said: str
    """Messages of our outcomes."""
    argument: Argument | None = None

    @property
    def group(self) -> str:
        """agreed, or who is right by the argument; open without one."""
        if self.ours == self.example.verdict:
            return "agreed"
        return self.argument.right if self.argument else "open"


def subjects() -> dict[tuple[str, str], Subject]:
    """Subjects by peer and check."""
    rows = tomllib.loads((HERE / "subjects.toml").read_text(encoding="utf-8"))["subject"]
    return {(row["peer"], row["check"]): Subject(**{"path": "", **row}) for row in rows}


@functools.cache
def arguments() -> tuple[Argument, ...]:
    """All arguments, by file."""
    return tuple(
        Argument(**{**row, "resources": tuple(row["resources"])})
        for file in sorted((HERE / "argued").glob("*.toml"))
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["argued"]
    )


def compare(examples: Iterable[Example], schema: Schema) -> Iterator[Compared]:
    """Judge the examples that have a subject; `unreadable` where an example cannot be converted."""
    known = subjects()
    argued = {
        (one.peer, one.check, one.example, resource, one.ours): one
        for one in arguments()
        for resource in one.resources
    }
    converted: dict[tuple[str, ...], Converted | None] = {}
    for example in examples:
        subject = known.get((example.peer, example.check))
        if subject is None:
            continue
        if example.texts not in converted:
            converted[example.texts] = _converted(example.texts, schema)
        ours, said = verdict(converted[example.texts], example.resource, subject)
        key = (example.peer, example.check, example.name, example.resource, ours)
        yield Compared(example, ours, said, argued.get(key))


def _converted(texts: Iterable[str], schema: Schema) -> Converted | None:
    module = Module()
    try:
        for text in texts:
            module.add(hcl.parse(text))
    except hcl.HclSyntaxError:
        return None
    return convert(module, schema)


def verdict(made: Converted | None, address: str, subject: Subject) -> tuple[str, str]:
    """(result of a rule or `unreadable`, messages) of an example, or of one resource of it."""
    if made is None or (address and address not in made.resources):
        return "unreadable", "the example, or its resource, cannot be converted"
    rule = CATALOG.rules[subject.rule]
    target = made.resources[address] if address else None
    resources = around(target, list(made.resources.values())) if target else list(made.resources.values())
    found = [
        one
        for one in evaluate(Stack(resources, SETTINGS), [rule])
        if _is_about(one, target, rule) and _is_of_part(one, subject)
    ]
    said = "; ".join(dict.fromkeys(one.message for one in found if one.message))
    # A rule that does not concern a resource has no violation of it; one without a resource has no verdict.
    results = {"pass" if one.result == "not-applicable" and one.resource else one.result for one in found}
    # A violation of another part of the rule leaves nothing of this part.
    order = ("fail", "undetermined", "pass", "not-applicable")
    return next((one for one in order if one in results), "pass"), said


def _is_of_part(outcome: RuleOutcome, subject: Subject) -> bool:
    if outcome.result == "fail":
        return bool(re.search(subject.path, outcome.path) and re.search(subject.message, outcome.message))
    of_other = subject.other and re.search(subject.other, outcome.message)
    return not (outcome.result == "undetermined" and of_other)


def _is_about(outcome: RuleOutcome, target: Resource | None, rule: PolicyRule) -> bool:
    if target is None or outcome.resource is None or target.kind not in rule.kinds:
        return True
    if outcome.resource is target or outcome.resource.kind not in rule.kinds:
        return True
    return _names(outcome.resource, target)  # a setting of the target, which the rule judges by itself


def _names(one: Resource, used: Resource) -> bool:
    """Return whether a resource refers to another, or is a setting that names its bucket."""
    return used.urn in one.dependencies or one.raw("bucket") in (used.id,)


def around(target: Resource, resources: Sequence[Resource]) -> list[Resource]:
    """The target, what uses it, and what all of these refer to; in the order of the example."""
    by_urn = {one.urn: one for one in resources}
    found = {target.urn, *(one.urn for one in resources if _names(one, target))}
    for up in (True, False):
        grows = True
        while grows:
            new = {
                urn
                for one in resources
                for urn in ([one.urn] if up else one.dependencies)
                if (any(used in found for used in one.dependencies) if up else one.urn in found)
            } - found
            new &= set(by_urn)
            found |= new
            grows = bool(new)
    return [one for one in resources if one.urn in found]


def table(rows: Sequence[Compared], read: Mapping[str, int], commits: Mapping[str, str]) -> str:
    """The section of RESULTS.md."""
    checks = len({(row.example.peer, row.example.check) for row in rows})
    lines = [
        f"`python benchmarks/peers/agreement.py --checkov DIR --trivy DIR`, {SETTINGS.today}: "
        + ", ".join(
            f"{peer} {commits[peer][:12]}, {count:,} verdicts in Terraform" for peer, count in read.items()
        )
        + f". {checks} checks have the subject of a rule.",
        "",
        "| cloud | peer | same check | agreed | ours right | peer right | open | other scope |"
        " ours right of same subject |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[Compared]] = {}
    for row in rows:
        groups.setdefault((row.example.cloud, row.example.peer), []).append(row)
        groups.setdefault(("all", ""), []).append(row)
    for (cloud, peer), members in sorted(groups.items(), key=lambda pair: (pair[0][0] == "all", pair[0])):
        counts = collections.Counter(one.group for one in members)
        same = len(members) - counts["scope"]
        good = counts["agreed"] + counts["ours"]
        share = f"{100 * good / same:.1f} %" if same else ""
        cells = (cloud, peer, len(members), counts["agreed"], counts["ours"], counts["peer"])
        lines.append(f"| {' | '.join(map(str, cells))} | {counts['open']} | {counts['scope']} | {share} |")
    return "\n".join(lines)


def write(section: str) -> None:
    """Replace the section of RESULTS.md."""
    text = RESULTS.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    RESULTS.write_text(f"{before}{_BEGIN}\n\n{section}\n\n{_END}{after}", encoding="utf-8")


def main(given: argparse.Namespace) -> int:
    readers: dict[str, Any] = {"checkov": checkouts.checkov, "trivy": checkouts.trivy}
    examples, read, commits = [], {}, {}
    for peer, reader in readers.items():
        checkout = getattr(given, peer)
        if checkout is not None:
            found = reader(checkout)
            read[peer], commits[peer] = len(found), checkouts.commit(checkout)
            examples += [one for one in found if given.check in (None, one.check)]
    packages = {name: Schemas(name, ROOT / ".trainstack" / "cache") for name in ("aws", "gcp", "kubernetes")}
    try:
        rows = list(compare(examples, lambda token: packages[token.partition(":")[0]].resource(token)))
    finally:
        for one in packages.values():
            one.close()
    for row in rows:
        if row.group == "open" or given.check:
            about = f"{row.example.check} {row.example.name} {row.example.resource}"
            print(f"{row.group}: {about}: ours {row.ours}, theirs {row.example.verdict} ({row.said[:160]})")
    stale = [] if given.check else unused(rows, read)
    for argument in stale:
        about = f"{argument.check} {argument.example} {' '.join(argument.resources)}"
        print(f"stale: {about}: ours {argument.ours}")
    section = table(rows, read, commits)
    print(section)
    if given.write:
        write(section)
    return 1 if stale or any(row.group in ("open", "peer") for row in rows) else 0


def unused(rows: Sequence[Compared], peers: Iterable[str]) -> list[Argument]:
    """Arguments of these peers of which a verdict did not occur."""
    used = collections.Counter(row.argument for row in rows)
    return [one for one in arguments() if one.peer in peers and used[one] < len(one.resources)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkov", type=Path, metavar="DIR", help="a checkout of bridgecrewio/checkov")
    parser.add_argument("--trivy", type=Path, metavar="DIR", help="a checkout of aquasecurity/trivy-checks")
    parser.add_argument("--check", metavar="ID", help="only this check, with every verdict")
    parser.add_argument("--write", action="store_true", help="renew the table in RESULTS.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(_arguments()))
