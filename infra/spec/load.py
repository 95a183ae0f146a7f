"""From a profile and a stack file to a StackSpec, or to every reason why not."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from infra.errors import Problem, UserError
from infra.spec import merge
from infra.spec.document import Branch, Leaf, Node, Origin, node, read
from infra.spec.problems import field_description, from_validation, tolerant
from infra.spec.rules import broken_rules
from infra.spec.stack import StackSpec

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "stacks" / "profiles"
CONFIG = ROOT / "stacks" / "config"
NAMESPACE = "trainstack"
SETTINGS = ("cloud", "profile", "region")


@dataclass(frozen=True)
class Provenance:
    """What `explain` tells about one value."""

    path: str
    value: Any
    origin: Origin
    description: str


@dataclass(frozen=True)
class LoadedSpec:
    """A checked spec that remembers where each value came from."""

    spec: StackSpec
    tree: Node

    def explain(self, path: str) -> list[Provenance]:
        """The values at or below `path` (all for ""). Raises UserError when there is nothing."""
        found = merge.origins(merge.merge(_defaults(self.spec), self.tree))
        content = self.spec.model_dump(mode="json")
        below = (f"{path}.", f"{path}[")
        chosen = [key for key in found if not path or key == path or key.startswith(below)]
        if not chosen:
            near = difflib.get_close_matches(path, found, n=3, cutoff=0.4)
            fix = f"Near it: {', '.join(near)}." if near else "Run `trainstack explain` for all keys."
            raise UserError([Problem(path, None, "there is no such key in this spec", fix)])
        return [Provenance(key, _at(content, key), found[key], field_description(key)) for key in chosen]


def _defaults(spec: StackSpec) -> Node:
    """The values nobody wrote down: those that the spec itself supplies."""
    return node(spec.model_dump(mode="json"), "default of the spec")


def _at(content: Any, path: str) -> Any:
    for step in path.replace("[", ".[").split("."):
        content = content[int(step[1:-1])] if step.startswith("[") else content[step]
    return content


def load_file(stack: str, folder: Path = CONFIG) -> LoadedSpec:
    """Load the stack file `Pulumi.<stack>.yaml`. Raises UserError with every problem."""
    source = f"Pulumi.{stack}.yaml"
    path = folder / source
    if not path.is_file():
        known = sorted(file.name.split(".")[1] for file in folder.glob("Pulumi.*.yaml"))
        fix = f"Stacks with a file: {', '.join(known) or 'none'}. Copy one of them to {path.name}."
        raise UserError([Problem("stack", stack, f"there is no {folder.name}/{source}", fix)])
    content = read(path, source)
    config = content.get("config") if isinstance(content, Mapping) else None
    if not isinstance(config, Mapping):
        rule = "a stack file holds a mapping under the key `config`"
        raise UserError([Problem(source, None, rule, "Start from stacks/config/Pulumi.dev-aws.yaml.")])
    prefix = f"{NAMESPACE}:"
    settings = {key.removeprefix(prefix): key for key in config if str(key).startswith(prefix)}
    tree = node(config, source)
    assert isinstance(tree, Branch)
    return load(stack, {name: tree.children[key] for name, key in settings.items()}, source)


def load(stack: str, settings: Mapping[str, Any], source: str) -> LoadedSpec:
    """Load from the settings `cloud`, `profile`, `region` and `spec`, as values or as nodes.

    Raises UserError with every problem, not only the first.
    """
    nodes = {
        name: value if isinstance(value, Leaf | Branch) else node(value, source)
        for name, value in settings.items()
    }
    problems = _setting_problems(nodes, source)
    if problems:
        raise UserError(problems)
    over = nodes.get("spec", Branch({}, Origin(source)))
    if not isinstance(over, Branch):
        raise UserError(
            [Problem("spec", merge.values(over), "a spec is a mapping", "See stacks/spec.schema.json.")]
        )
    profile = _profile(nodes)
    fixed: dict[str, Node] = {name: nodes[name] for name in SETTINGS}
    fixed["name"] = Leaf(stack, Origin(source))
    tree = merge.merge(merge.merge(profile, over), Branch(fixed, over.origin))
    return _validated(tree)


def _setting_problems(nodes: Mapping[str, Node], source: str) -> list[Problem]:
    known = (*SETTINGS, "spec")
    problems = [
        Problem(f"{NAMESPACE}:{name}", None, "unknown setting", f"Known are {', '.join(known)}.")
        for name in nodes
        if name not in known
    ]
    problems += [
        Problem(f"{NAMESPACE}:{name}", None, "required setting is missing", f"Add it to {source}.")
        for name in SETTINGS
        if name not in nodes
    ]
    return problems


def _profile(nodes: Mapping[str, Node]) -> Node:
    cloud, profile = merge.values(nodes["cloud"]), merge.values(nodes["profile"])
    path = PROFILES / f"{profile}.{cloud}.yaml"
    if not path.is_file():
        known = sorted(file.stem for file in PROFILES.glob("*.yaml"))
        rule = f"there is no profile {profile!r} for cloud {cloud!r}"
        problem = Problem(
            f"{NAMESPACE}:profile", profile, rule, f"Profiles (profile.cloud): {', '.join(known)}."
        )
        raise UserError([problem])
    source = f"profiles/{path.name}"
    return node(read(path, source), source)


def _validated(tree: Node) -> LoadedSpec:
    content = merge.values(tree)
    try:
        spec = StackSpec.model_validate(content)
    except ValidationError as error:
        problems = from_validation(error, merge.origins(tree))
        raise UserError(problems + _rules_of_the_rest(content, problems)) from None
    problems = broken_rules(spec)
    if problems:
        raise UserError(problems)
    return LoadedSpec(spec, tree)


def _rules_of_the_rest(content: Any, wrong: list[Problem]) -> list[Problem]:
    """The rules that are broken besides by values that are not wrong in themselves."""
    paths = {problem.path for problem in wrong}
    return [
        problem
        for problem in broken_rules(tolerant(StackSpec, content), tolerant_of_gaps=True)
        if not any(_related(problem.path, path) for path in paths)
    ]


def _related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))
