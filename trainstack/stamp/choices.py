"""Choices for a new client, which the lock keeps as answers: every value is written out.

A default of a later version must not move a deployed stack to another region.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from infra.errors import Problem, UserError, did_you_mean, nearest_first
from infra.stackspec.layers import below
from infra.stackspec.supported import PROFILES
from trainstack.stamp.clouds import PAIRS, STAMPED

ENVIRONMENTS = ("dev", "prod")
CLOUDS = tuple(sorted(STAMPED))
LONGEST = 32 - max(len(f"-{one}") for one in ENVIRONMENTS)
"""Characters of a name: names of resources begin with the name of the stack, of at most 32 characters
(`infra.stackspec.model.Name`; tests/stacks/test_names.py shows that the names of both clouds fit)."""
_FIX = "Restore .stamp/ from version control."
_NAME = re.compile(r"[a-z](-?[a-z0-9])+")


@dataclass(frozen=True)
class ClientChoices:
    """Choices for a new client; `stack_file.completed` replaces empty ones."""

    name: str
    cloud: str
    profile: str
    region: str = ""
    owner: str = ""
    budget: int = 0
    """US dollars per month of each environment."""
    account: str = ""
    """AWS account or Google Cloud project of every environment; empty: an example, to be replaced."""
    machine: str = ""
    """Machine type of a further pool for training, as `trainstack advise` names it; empty: none."""
    market: str = ""
    """Its purchase, on_demand or spot."""
    nodes: int = 0
    """Its largest number of nodes."""

    def stack(self, environment: str) -> str:
        """The stack of an environment: it begins with the client, as clients can share an account."""
        return f"{self.name}-{environment}"

    @property
    def stacks(self) -> Mapping[str, str]:
        """Environments by stack."""
        return {self.stack(one): one for one in ENVIRONMENTS}


def of_answers(answers: Mapping[str, Any]) -> ClientChoices:
    """The choices in a lock. Raises UserError for answers of another version, or edited ones."""
    known = {one.name: one.type for one in fields(ClientChoices)}
    wrong = [(name, "is unknown to this version") for name in answers.keys() - known.keys()]
    wrong += [(name, "is missing") for name in known.keys() - answers.keys()]
    wrong += [
        (name, f"must be of the type {getattr(form, '__name__', form)}")
        for name, form in known.items()
        if name in answers and type(answers[name]) is not form
    ]
    problems = [
        Problem(
            f".stamp/lock.yaml.answers.{name}", answers.get(name), rule, _FIX, code="client-answers-invalid"
        )
        for name, rule in wrong
    ]
    if problems:
        raise UserError(problems)
    return ClientChoices(**answers)


def check(choices: ClientChoices) -> None:
    """Raise UserError with every choice that no stack file can have; each problem names its option."""
    if problems := [*_name_problems(choices.name), *_pair_problems(choices), *_place_problems(choices)]:
        raise UserError(problems)
    below(choices.profile, choices.cloud, None)


def _name_problems(name: str) -> Iterator[Problem]:
    if _NAME.fullmatch(name) and len(name) <= LONGEST:
        return
    rule = (
        f"must be 2 to {LONGEST} lower-case letters, digits and single dashes, with a letter first: "
        "it is used as folder, project and in names of resources"
    )
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    near = re.sub(r"[^a-z0-9]+", "-", plain).lstrip("-0123456789")[:LONGEST].strip("-")
    shown = name if len(name) <= LONGEST else f"{name[:LONGEST]}... ({len(name)} characters)"
    fix = f"Such as {near}." if _NAME.fullmatch(near) else "Such as acme."
    yield Problem("CLIENT", shown, rule, fix, code="client-name-invalid")


def _pair_problems(choices: ClientChoices) -> Iterator[Problem]:
    cloud, profile = choices.cloud, choices.profile
    for option, value, known in (("--cloud", cloud, CLOUDS), ("--profile", profile, PROFILES)):
        if value not in known:
            fix = did_you_mean(value, known, f"Choose from {', '.join(known)}.")
            yield Problem(option, value, "no such choice", fix, code="no-such-choice")
            return
    if (profile, cloud) not in PAIRS:
        sizes = ", ".join(one for one in PROFILES if (one, cloud) in PAIRS)
        rule = f"new clients are not made with this profile on {cloud}"
        yield Problem("--profile", profile, rule, f"Choose from {sizes}.", code="profile-not-on-cloud")


def _place_problems(choices: ClientChoices) -> Iterator[Problem]:
    cloud = STAMPED.get(choices.cloud)
    if cloud and choices.region and choices.region not in cloud.regions:
        fix = nearest_first(choices.region, cloud.regions)
        yield Problem("--region", choices.region, "unknown region", fix, code="unknown-region")
    if cloud and choices.account and not cloud.account.fullmatch(choices.account):
        rule, fix = cloud.account_rule, f"Such as {cloud.account_example}."
        yield Problem("--account", choices.account, rule, fix, code="account-invalid")
