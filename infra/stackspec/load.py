"""Loads a StackSpec from its layers; raises with every problem."""

import contextlib
import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from infra import places
from infra.errors import Problem, UserError, did_you_mean
from infra.naming import cluster_stack
from infra.stackspec import layers, merge
from infra.stackspec.clusters.large import clusters_of
from infra.stackspec.document import Branch, Leaf, Node, Origin, node, read
from infra.stackspec.problems import booleans_for_numbers, from_validation, placed, steps_of
from infra.stackspec.rules import broken_rules
from infra.stackspec.several.clouds import defaults
from infra.stackspec.several.derived import ClusterMember, worker_tree
from infra.stackspec.stack import StackSpec
from infra.stackspec.unions import description_in, tolerant

CONFIG = places.STACK_FILES or Path()
NAMESPACE = "trainstack"
REQUIRED = ("cloud", "profile", "region")
OF, CLUSTER = "of", "cluster"
_PROFILE_LAYERS = 2
"""Layers of a profile, below that of a client: of all clouds, and of one."""
SETTINGS = (*REQUIRED, "client", OF, CLUSTER)


@dataclass(frozen=True)
class Provenance:
    """A value with its origin and description, for `explain`."""

    path: str
    value: Any
    origin: Origin
    description: str


@dataclass(frozen=True)
class LoadedSpec:
    """A spec whose values have their types, with the origin of each value."""

    spec: StackSpec
    tree: Node
    member: ClusterMember | None = None
    """The place of a cluster in its large stack; None for other stacks."""
    broken: tuple[Problem, ...] = ()
    """Rules that it breaks: only `load_typed` and `load_deployed` return such a spec."""

    def explain(self, path: str) -> list[Provenance]:
        """The values at or below `path` (all for ""). Raises UserError if there are none."""
        content = self.spec.model_dump(mode="json")
        found = merge.origins(merge.merge(node(content, "default of the spec"), self.tree))
        below = (f"{path}.", f"{path}[")
        chosen = [key for key in found if not path or key == path or key.startswith(below)]
        if not chosen:
            near = difflib.get_close_matches(path, found, n=3, cutoff=0.4)
            fix = f"Near it: {', '.join(near)}." if near else "Run `trainstack explain` for all keys."
            raise UserError([Problem(path, None, "this spec has no such key", fix, code="no-such-key")])
        return [self._provenance(key, content, found[key]) for key in chosen]

    def _provenance(self, path: str, content: Any, origin: Origin) -> Provenance:
        steps = steps_of(path)
        for step in steps:
            content = content[step]
        return Provenance(path, content, origin, description_in(self.spec, steps))


def stacks(folder: Path = CONFIG) -> list[str]:
    """Names of the stacks that have a file. Raises UserError outside of a folder with stacks."""
    if folder == CONFIG and places.STACK_FILES is None:
        rule = "no folder of stacks: neither it nor one above has a Pulumi.yaml of trainstack"
        fix = "Change into the folder of a client, or make one: `trainstack new NAME`."
        raise UserError([Problem("folder", str(Path.cwd()), rule, fix, code="no-folder-of-stacks")])
    return sorted(file.stem.removeprefix("Pulumi.") for file in folder.glob("Pulumi.*.yaml"))


def require_file(stack: str, folder: Path = CONFIG) -> None:
    """Raise UserError where a stack has no file `Pulumi.<stack>.yaml`."""
    known = stacks(folder)
    if stack not in known:
        names = ", ".join(known) or "none"
        fix = did_you_mean(stack, known, f"Choose from {names}, or copy the file of one of them.")
        at = folder.name if folder == places.CLIENT else f"{folder.parent.name}/{folder.name}"
        rule = f"has no file {at}/Pulumi.{stack}.yaml"
        raise UserError([Problem("--stack", stack, rule, fix, code="stack-file-missing")])


def members_left(spec: StackSpec, folder: Path = CONFIG) -> list[str]:
    """Stacks whose files name a cluster of this large stack that it has not; of any other stack none."""
    names, found = {one.name for one in clusters_of(spec.layout)}, list[str]()
    if not names:
        return found
    for stack in stacks(folder):
        with contextlib.suppress(UserError):  # files of other stacks may be wrong
            given = {name: merge.values(one) for name, one in _file(stack, folder)[0].items()}
            cluster = given.get(CLUSTER)
            if (
                given.get(OF) == spec.name
                and cluster not in names
                and stack == cluster_stack(spec.name, str(cluster))
            ):
                found.append(stack)
    return found


def load_file(stack: str, folder: Path = CONFIG) -> LoadedSpec:
    """Load the stack file `Pulumi.<stack>.yaml`. Raises UserError with every problem."""
    return _unbroken(load_typed(stack, folder))


def load_typed(stack: str, folder: Path = CONFIG) -> LoadedSpec:
    """Load a stack file that may break rules, for commands that only read it. Raises UserError otherwise."""
    return _typed(stack, *_file(stack, folder), folder)


def load_deployed(stack: str, folder: Path = CONFIG) -> tuple[StackSpec | None, tuple[Problem, ...]]:
    """The spec of a stack that an earlier version may have deployed, and what is wrong with it today.

    None where values are not of their types. Raises UserError for a stack file without settings.
    """
    settings, source = _file(stack, folder)
    try:
        loaded = _typed(stack, settings, source, folder)
    except UserError as error:
        return None, error.problems
    return loaded.spec, loaded.broken


def _clients(folder: Path) -> Path:
    """The layers of clients beside the stack files of a client's folder, or of the checkout."""
    return layers.CLIENTS if folder == CONFIG else folder / "clients"


def _file(stack: str, folder: Path) -> tuple[Mapping[str, Node], str]:
    """The settings in a stack file, and its name."""
    require_file(stack, folder)
    source = f"Pulumi.{stack}.yaml"
    content = read(folder / source, source)
    config = content.get("config") if isinstance(content, Mapping) else None
    if not isinstance(config, Mapping):
        rule = "a stack file needs a mapping under the key `config`"
        fix = "Start from stacks/config/Pulumi.dev-aws.yaml."
        raise UserError([Problem(source, None, rule, fix, code="stack-file-without-config")])
    prefix = f"{NAMESPACE}:"
    settings = {key.removeprefix(prefix): key for key in config if str(key).startswith(prefix)}
    tree = node(config, source)
    assert isinstance(tree, Branch)
    return {name: tree.children[key] for name, key in settings.items()}, source


def load(stack: str, settings: Mapping[str, Any], source: str) -> LoadedSpec:
    """Load from the settings `cloud`, `profile`, `region`, `client` and `spec`, as values or as nodes.

    Raises UserError with every problem, not only the first.
    """
    return _unbroken(_typed(stack, settings, source))


def _unbroken(loaded: LoadedSpec) -> LoadedSpec:
    if loaded.broken:
        raise UserError(loaded.broken)
    return loaded


def _typed(stack: str, settings: Mapping[str, Any], source: str, folder: Path = CONFIG) -> LoadedSpec:
    nodes = {
        name: value if isinstance(value, Leaf | Branch) else node(value, source)
        for name, value in settings.items()
    }
    if OF in nodes or CLUSTER in nodes:
        return _of_cluster(stack, nodes, source, folder)
    over = nodes.pop("spec", Branch({}, Origin(source)))
    problems = _setting_problems(nodes, source)
    if not isinstance(over, Branch) or over.named:
        fix = "See stacks/spec.schema.json."
        rule = "a spec must be a mapping"
        raise UserError(
            [*problems, Problem("trainstack:spec", merge.values(over), rule, fix, code="spec-not-a-mapping")]
        )
    if problems:
        raise UserError(problems)
    client = _text(nodes["client"]) if "client" in nodes else None
    profile, cloud = _text(nodes["profile"]), _text(nodes["cloud"])
    folded = [*layers.below(profile, cloud, client, _clients(folder)), over, _fixed(stack, nodes, source)]
    if other_clouds := defaults(functools.reduce(merge.merge, folded), profile, cloud):
        folded.insert(_PROFILE_LAYERS, other_clouds)
    return _checked(folded)


def _setting_problems(nodes: Mapping[str, Node], source: str) -> list[Problem]:
    known, wrong = (*REQUIRED, "client", "spec"), list[tuple[str, object, str, str, str]]()
    fix = f"Known are {', '.join(known)}."
    wrong += [(name, None, "unknown setting", fix, "unknown-setting") for name in nodes if name not in known]
    rule, fix, code = "required setting is missing", f"Add it to {source}.", "required-setting-missing"
    wrong += [(name, None, rule, fix, code) for name in REQUIRED if name not in nodes]
    return [
        *(
            Problem(f"{NAMESPACE}:{name}", value, rule, fix, code=code)
            for name, value, rule, fix, code in wrong
        ),
        *_text_problems({name: one for name, one in nodes.items() if name in known}),
    ]


def _text_problems(nodes: Mapping[str, Node]) -> list[Problem]:
    rule, fix, code = "a setting must be a string", "Write a single word.", "setting-not-text"
    return [
        Problem(f"{NAMESPACE}:{name}", merge.values(found), rule, fix, code=code)
        for name, found in nodes.items()
        if not (isinstance(found, Leaf) and isinstance(found.value, str))
    ]


def _of_cluster(stack: str, nodes: Mapping[str, Node], source: str, folder: Path) -> LoadedSpec:
    """The spec of a stack whose file only names a cluster of a large stack, which its own file describes."""
    problems = [
        Problem(
            f"{NAMESPACE}:{name}", None, "required setting is missing", fix, code="required-setting-missing"
        )
        for name, fix in ((OF, "Name the large stack."), (CLUSTER, "Name one of its clusters."))
        if name not in nodes
    ]
    problems += [
        Problem(
            f"{NAMESPACE}:{name}",
            None,
            "the large stack says it",
            f"Leave it out: {source} has only {OF} and {CLUSTER}.",
            f"{NAMESPACE}:{OF}",
            code="setting-of-large-stack",
        )
        for name in nodes
        if name not in (OF, CLUSTER)
    ]
    problems += _text_problems({name: one for name, one in nodes.items() if name in (OF, CLUSTER)})
    if problems:
        raise UserError(problems)
    of, cluster = _text(nodes[OF]), _text(nodes[CLUSTER])
    settings, large_file = _file(of, folder)
    if OF in settings or CLUSTER in settings:
        raise UserError([_not_large(of, f"it is itself a cluster, by {large_file}")])
    whole = _typed(of, settings, large_file, folder)
    names = [one.name for one in clusters_of(whole.spec.layout)]
    if not names:
        raise UserError([_not_large(of, f"its profile is {whole.spec.profile}")])
    if cluster not in names:
        fix = did_you_mean(cluster, names, f"Clusters of {of} are {', '.join(names)}.")
        path, rule = f"{NAMESPACE}:{CLUSTER}", f"{of} has no such cluster"
        raise UserError([Problem(path, cluster, rule, fix, f"{NAMESPACE}:{OF}", code="unknown-cluster")])
    if stack != (name := cluster_stack(of, cluster)):
        rule, fix = f"the stack of this cluster is {name}", f"Rename the file to Pulumi.{name}.yaml."
        raise UserError(
            [Problem("stack", stack, rule, fix, f"{NAMESPACE}:{CLUSTER}", code="stack-not-of-cluster")]
        )
    tree = worker_tree(whole.tree, cluster)
    try:
        spec = StackSpec.model_validate(merge.values(tree))
    except ValidationError:
        if not whole.broken:
            raise
        raise UserError(whole.broken) from None  # such as two pools of one full name
    return LoadedSpec(spec, tree, ClusterMember(whole.spec, cluster), broken=whole.broken)


def _not_large(of: str, why: str) -> Problem:
    rule, fix = f"is no stack of several clusters: {why}", "Name a stack of profile large."
    return Problem(f"{NAMESPACE}:{OF}", of, rule, fix, code="not-a-large-stack")


def _text(found: Node) -> str:
    assert isinstance(found, Leaf)
    return str(found.value)


def _fixed(stack: str, nodes: Mapping[str, Node], source: str) -> Node:
    here = Origin(source)
    return Branch(
        {
            "name": Leaf(stack, here),
            "region": nodes["region"],
            "layout": Branch({"profile": nodes["profile"]}, here),
            "on": Branch({"cloud": nodes["cloud"]}, here),
        },
        here,
    )


def _checked(folded: list[Node]) -> LoadedSpec:
    tree, clashes = folded[0], []
    for layer in folded[1:]:
        clashes += [*merge.contradictions(tree, layer)]
        tree = merge.merge(tree, layer)
    content, origins = merge.values(tree), merge.origins(tree)
    spec: StackSpec | None = None
    try:
        spec = StackSpec.model_validate(content)
        wrong = [*booleans_for_numbers(content, spec)]
        broken = _apart_from(broken_rules(spec), wrong)
    except ValidationError as error:
        checked = tolerant(StackSpec, content)
        found = [*from_validation(error, origins), *booleans_for_numbers(content, checked)]
        wrong = _apart_from(found, clashes)
        broken = _apart_from(broken_rules(checked, tolerant_of_gaps=True), wrong)
    problems = (*clashes, *placed([*wrong, *_apart_from(broken, clashes)], origins))
    if spec is None:
        raise UserError(problems)
    return LoadedSpec(spec, tree, broken=problems)


def _apart_from(problems: list[Problem], known: list[Problem]) -> list[Problem]:
    """The problems that are not at, above or below the path of a known one."""
    return [one for one in problems if not any(_related(one.path, other.path) for other in known)]


def _related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))
