"""Policy packs that the engine is to ask, and what they said."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulumi.automation.events import PolicyEvent

from infra.errors import Problem, UserError

PACK_OPTION, CONFIG_OPTION = "--policy-pack", "--policy-pack-config"


@dataclass(frozen=True)
class Packs:
    """Paths of policy packs, and of their configurations, in the same order."""

    paths: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()

    @staticmethod
    def read(paths: Sequence[Path], configs: Sequence[Path]) -> "Packs":
        """As a user names them; the engine works in another folder. Raises UserError with all faults.

        A pack is told faulty here if the engine would do so only after it has started.
        """
        problems = [*_faults(paths, configs), *_pack_faults(paths), *_config_faults(configs)]
        if problems:
            raise UserError(problems)
        return Packs(
            tuple(str(path.resolve()) for path in paths), tuple(str(path.resolve()) for path in configs)
        )

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.paths)

    @property
    def options(self) -> dict[str, list[str]]:
        """What the Automation API takes."""
        return {"policy_packs": [*self.paths], "policy_pack_configs": [*self.configs]}


NO_PACKS = Packs()


@dataclass(frozen=True)
class PolicyFinding:
    """What a policy said about a resource, or about the stack."""

    level: str
    """`mandatory` or `advisory`, as the engine applies it."""
    policy: str
    text: str
    urn: str = ""

    @staticmethod
    def told(event: PolicyEvent) -> "PolicyFinding":
        """As the engine tells it."""
        return PolicyFinding(
            event.enforcement_level, event.policy_name, event.message.strip(), event.resource_urn or ""
        )


def _faults(paths: Sequence[Path], configs: Sequence[Path]) -> Iterator[Problem]:
    if configs and len(configs) != len(paths):
        rule = f"there are {len(configs)} of it and {len(paths)} of {PACK_OPTION}"
        fix = "Give one for each pack, in the same order, or none."
        yield Problem(CONFIG_OPTION, [str(one) for one in configs], rule, fix, code="pack-configs-mismatch")


def _pack_faults(paths: Sequence[Path]) -> Iterator[Problem]:
    for path in paths:
        if path.is_file() and os.access(path, os.X_OK):
            continue
        if not (path / "PulumiPolicy.yaml").is_file():
            rule = "is no policy pack: it has no PulumiPolicy.yaml"
            yield Problem(
                PACK_OPTION,
                str(path),
                rule,
                "Name the folder of a pack; ours is `policies`.",
                code="not-a-policy-pack",
            )


def _config_faults(configs: Sequence[Path]) -> Iterator[Problem]:
    fix = "It is a JSON object; see docs/how-to/policy-pack.md."
    for path in configs:
        try:
            content = json.loads(path.read_text())
        except OSError as error:
            yield Problem(
                CONFIG_OPTION,
                str(path),
                f"cannot be read: {error.strerror}",
                fix,
                code="pack-config-not-readable",
            )
        except ValueError as error:
            yield Problem(CONFIG_OPTION, str(path), f"is no JSON: {error}", fix, code="pack-config-not-json")
        else:
            if not isinstance(content, dict):
                yield Problem(CONFIG_OPTION, str(path), "holds no object", fix, code="pack-config-not-object")
