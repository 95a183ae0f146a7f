"""Code about one cloud lies in a folder `aws` or `gcp`; few places elsewhere test for a cloud or a layout."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_structure import LAYERS, ROOT, python

CLOUDS = {"aws", "gcp"}
SERVICES = {"amazon", "google", "sagemaker", "vertex", "gke", "eks"}
PROFILES = {"small", "small-cluster", "medium", "large"}
MODELS = {"AwsSpec", "GcpSpec", "SmallLayout", "ClusterLayout", "LargeLayout"}
MOST_PLACES = 26


def outside_of_cloud_folders() -> Iterator[Path]:
    return (path for path in python() if path.parts[0] in LAYERS and not CLOUDS & {*path.parts[:-1]})


def test_a_cloud_or_a_layout_is_tested_in_few_places() -> None:
    places = {
        f"{path}:{node.lineno}"
        for path in outside_of_cloud_folders()
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.expr | ast.Match) and _tests_a_cloud(node)
    }
    assert len(places) <= MOST_PLACES, sorted(places)


def test_no_file_outside_of_the_folders_of_a_cloud_is_named_after_one() -> None:
    named = [
        str(path) for path in outside_of_cloud_folders() if {*path.stem.split("_")} & (CLOUDS | SERVICES)
    ]
    assert named == []


def _tests_a_cloud(node: ast.expr | ast.Match) -> bool:
    """Whether an expression or a whole `match` chooses by the name or the model of a cloud or a layout."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            return bool(_names(kinds) & MODELS)
        case ast.Compare():
            return bool(_texts([node.left, *node.comparators]))
        case ast.Match():
            patterns = [pattern for case in node.cases for pattern in ast.walk(case.pattern)]
            models = {name for one in patterns if isinstance(one, ast.MatchClass) for name in _names(one.cls)}
            values = [one.value for one in patterns if isinstance(one, ast.MatchValue)]
            return bool(models & MODELS or _texts(values))
        case ast.Dict():
            keys = [key for key in node.keys if key is not None]
            return _texts(keys) >= CLOUDS or len({name for key in keys for name in _names(key)} & MODELS) > 1
    return False


def _names(node: ast.expr) -> set[str]:
    inner = list(ast.walk(node))
    plain = {one.id for one in inner if isinstance(one, ast.Name)}
    return plain | {one.attr for one in inner if isinstance(one, ast.Attribute)}


def _texts(nodes: list[ast.expr]) -> set[str]:
    """Names of clouds, services and profiles that stand in expressions, also in lists and tuples."""
    values = [one for node in nodes for one in (getattr(node, "elts", None) or [node])]
    return {str(one.value) for one in values if isinstance(one, ast.Constant)} & (
        CLOUDS | SERVICES | PROFILES
    )
