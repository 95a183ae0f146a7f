"""Examples of checkov and trivy-checks, with the verdict that each peer states for them.

A checkout is read by `git archive`, so it needs no work tree. checkov states verdicts in its tests, as sets
of addresses or as the result of `scan_resource_conf`, and for checks on graphs in `expected.yaml`.
trivy-checks has good and bad examples in the metadata of a check.
"""

import ast
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import yaml

Verdict = Literal["pass", "fail"]
CLOUDS = {"aws": "aws", "gcp": "gcp", "google": "gcp", "kubernetes": "kubernetes"}
_CHECKOV = (
    "tests/terraform/checks/resource",
    "tests/terraform/graph/checks/resources",
    "checkov/terraform/checks/resource",
    "checkov/terraform/checks/graph_checks",
)
_ID = re.compile(r"""["'](CKV2?_[A-Z0-9]+_\d+)["']""")
_KIND = re.compile(r"""["']((?:aws|google|kubernetes)_\w+)["']""")
_TRIVY_ID = re.compile(r"^#   id: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """One verdict of a peer about one resource, or about a whole example."""

    peer: str
    check: str
    cloud: str
    name: str
    """File or folder in the peer's repository; for trivy-checks with good or bad and its number."""
    texts: tuple[str, ...]
    resource: str
    """Address of the resource; empty for the whole example."""
    verdict: Verdict


def commit(checkout: Path) -> str:
    """The commit that is read."""
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def files(checkout: Path, *folders: str) -> dict[str, str]:
    """Text of the files below folders of the commit, by path."""
    packed = subprocess.run(
        ["git", "-C", str(checkout), "archive", "--format=tar", "HEAD", *folders],
        capture_output=True,
        check=True,
    )
    found = {}
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None and member.name.endswith((".py", ".tf", ".yaml", ".yml", ".rego")):
                found[member.name] = stream.read().decode(errors="replace")
    return found


def checkov(checkout: Path) -> list[Example]:
    """Examples of checkov's checks of resources and of graphs."""
    found = files(checkout, *_CHECKOV)
    return [*_of_tests(found), *_of_graphs(found)]


def trivy(checkout: Path) -> list[Example]:
    """Examples of trivy-checks' checks of clouds."""
    found = files(checkout, "checks/cloud")
    made = []
    for path, text in sorted(found.items()):
        identity = _TRIVY_ID.search(found.get(path.removesuffix(".yaml") + ".rego", ""))
        cloud = CLOUDS.get(PurePosixPath(path).parts[2], "")
        if not path.endswith(".yaml") or identity is None or not cloud:
            continue
        terraform = (yaml.safe_load(text) or {}).get("terraform") or {}
        for kind, verdict in (("good", "pass"), ("bad", "fail")):
            for index, example in enumerate(terraform.get(kind) or ()):
                name = f"{path} {kind}[{index}]"
                made.append(Example("trivy", identity[1], cloud, name, (example,), "", verdict))  # type: ignore[arg-type]
    return made


def _of_tests(found: Mapping[str, str]) -> Iterator[Example]:
    for path, text in sorted(found.items()):
        place = PurePosixPath(path)
        cloud = CLOUDS.get(place.parent.name, "")
        if not cloud or not place.name.startswith("test_") or "checks/resource" not in path:
            continue
        checked = re.search(r"from (checkov\.terraform\.checks\.resource\.\S+) import", text)
        source = found.get(checked[1].replace(".", "/") + ".py", "") if checked else ""
        identity = _ID.search(source)
        if identity is None:
            continue
        tree = ast.parse(text)
        yield from _of_folder(found, place, tree, identity[1], cloud)
        yield from _of_inline(str(place), tree, identity[1], cloud)
        kinds = set(_KIND.findall(source))
        if len(kinds) == 1:
            yield from _of_parsed(str(place), tree, identity[1], cloud, *kinds)


def _of_folder(
    found: Mapping[str, str], place: PurePosixPath, tree: ast.Module, check: str, cloud: str
) -> Iterator[Example]:
    words = {
        node.value.strip("/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip("/")
    }
    texts = {word: _terraform(found, f"{place.parent}/{word}/") for word in words}
    folders = [word for word, read in texts.items() if read]
    stated: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Set | ast.List | ast.Tuple):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    stated[target.id] = {
                        one.value
                        for one in node.value.elts
                        if isinstance(one, ast.Constant) and isinstance(one.value, str)
                    }
    if len(folders) != 1:
        return
    folder = folders[0]
    for variable, verdict in (("passing_resources", "pass"), ("failing_resources", "fail")):
        for resource in sorted(_without_instances(stated.get(variable, ()))):
            yield Example(
                "checkov",
                check,
                cloud,
                f"{place.parent}/{folder}",
                texts[folder],
                resource,
                verdict,  # type: ignore[arg-type]
            )


def _of_inline(name: str, tree: ast.Module, check: str, cloud: str) -> Iterator[Example]:
    """Tests that parse a text and compare the result of one resource of it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test"):
            continue
        texts = [
            call.args[0].value
            for call in ast.walk(node)
            if isinstance(call, ast.Call)
            and ast.unparse(call.func) == "hcl2.loads"
            and call.args
            and isinstance(call.args[0], ast.Constant)
        ]
        address = re.search(r"\['(\w+)'\]\['([\w-]+)'\]", ast.unparse(node))
        result = set(re.findall(r"CheckResult\.(PASSED|FAILED)", ast.unparse(node)))
        if len(texts) == 1 and address and len(result) == 1:
            verdict: Verdict = "pass" if result == {"PASSED"} else "fail"
            where = f"{address[1]}.{address[2]}"
            yield Example("checkov", check, cloud, f"{name} {node.name}", (str(texts[0]),), where, verdict)


def _of_parsed(name: str, tree: ast.Module, check: str, cloud: str, kind: str) -> Iterator[Example]:
    """Tests that state a resource as an older parser returned it: each value in a list."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test"):
            continue
        stated = [
            one.value
            for one in node.body
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) in ("conf", "resource_conf")
        ]
        result = set(re.findall(r"CheckResult\.(PASSED|FAILED)", ast.unparse(node)))
        try:
            conf = [ast.literal_eval(one) for one in stated]
        except ValueError:
            continue
        if len(conf) == 1 and isinstance(conf[0], dict) and len(result) == 1:
            text = f'resource "{kind}" "one" {{\n{_body(conf[0])}}}\n'
            verdict: Verdict = "pass" if result == {"PASSED"} else "fail"
            yield Example("checkov", check, cloud, f"{name} {node.name}", (text,), f"{kind}.one", verdict)


def _body(conf: Mapping[str, Any]) -> str:
    """Attributes and blocks of such a resource, as Terraform."""
    text = ""
    for name, given in conf.items():
        values = given if isinstance(given, list) else [given]
        if values and all(isinstance(one, dict) for one in values):
            text += "".join(f"{name} {{\n{_body(one)}}}\n" for one in values)
        else:
            text += f"{name} = {json.dumps(values[0] if len(values) == 1 else values)}\n"
    return text


def _of_graphs(found: Mapping[str, str]) -> Iterator[Example]:
    for path, text in sorted(found.items()):
        if "graph_checks/" not in path or not path.endswith(".yaml"):
            continue
        cloud = CLOUDS.get(PurePosixPath(path).parent.name, "")
        folder = f"tests/terraform/graph/checks/resources/{PurePosixPath(path).stem}"
        expected = found.get(f"{folder}/expected.yaml")
        if not cloud or expected is None:
            continue
        check = str((yaml.safe_load(text).get("metadata") or {}).get("id"))
        stated: Mapping[str, Any] = yaml.safe_load(expected) or {}
        for verdict in ("pass", "fail"):
            for place in _without_instances(map(str, stated.get(verdict) or ())):
                read = _terraform(found, f"{folder}/")
                yield Example("checkov", check, cloud, folder, read, place, verdict)


def _without_instances(addresses: Iterable[str]) -> list[str]:
    """Addresses without `[0]`; other instances differ by values of `for_each`, which are not evaluated."""
    plain = [address.replace("[0]", "") for address in addresses]
    return [address for address in plain if "[" not in address and not address.startswith("module.")]


def _terraform(found: Mapping[str, str], folder: str) -> tuple[str, ...]:
    """The module in a folder: its files, without those of folders below."""
    return tuple(
        text
        for path, text in sorted(found.items())
        if path.startswith(folder) and path.endswith(".tf") and "/" not in path.removeprefix(folder)
    )
