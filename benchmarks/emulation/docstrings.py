"""Resources of the examples in the documentation of an SDK that the rehearsal refuses by their inputs alone.

    .venv/bin/python benchmarks/emulation/docstrings.py aws|gcp [--shown 300]

Every example in Python of every resource is run with Pulumi's mocks; the inputs of each resource in it
are judged by the rules. Examples that do not run are counted. A refusal is false unless the example is wrong.
"""

import argparse
import collections
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from rehearsal.aws.rules import BOOK as AWS  # noqa: E402
from rehearsal.core.model import UNKNOWN  # noqa: E402
from rehearsal.core.properties import without_none  # noqa: E402
from rehearsal.core.rules.model import Book  # noqa: E402
from rehearsal.core.sdk_types import resource_class  # noqa: E402
from rehearsal.gcp.rules import BOOK as GCP  # noqa: E402
from tools.provider_types import tokens  # noqa: E402

_EXAMPLE = re.compile(r"^ *```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
BOOKS: dict[str, Book[Any]] = {"aws": AWS, "gcp": GCP}


def plain(value: Any) -> Any:
    """A value with the mark of the engine for what is unknown."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, str | bool | int | float) else UNKNOWN


class Recorder(pulumi.runtime.Mocks):
    """Record the type and the inputs of every resource."""

    def __init__(self) -> None:
        self.made: list[tuple[str, dict[str, Any]]] = []

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Answer with the inputs, and with outputs that are unknown."""
        self.made.append((args.typ, plain(args.inputs)))
        return "", dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        """Answer with nothing."""
        return {}


def examples(token: str) -> Iterator[str]:
    """The examples of a resource type, out of its module's text: overloads have the documentation."""
    cls = resource_class(token)
    text = Path(inspect.getfile(cls)).read_text(encoding="utf-8") if cls else ""
    yield from dict.fromkeys(textwrap.dedent(one) for one in _EXAMPLE.findall(text))


def made_by(program: str) -> list[tuple[str, dict[str, Any]]]:
    """(type, inputs) of the resources of a program. Raises whatever it raises."""
    recorder = Recorder()
    pulumi.runtime.set_mocks(recorder, preview=True)
    code = compile(program, "example", "exec")
    run: Callable[[], object] = pulumi.runtime.test(lambda: exec(code, {}))  # type: ignore[no-untyped-call]
    run()
    return recorder.made


def main() -> None:
    """Print each refusal, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", choices=BOOKS)
    parser.add_argument("--shown", type=int, default=300)
    options = parser.parse_args()
    book, counts = BOOKS[options.package], collections.Counter[str]()
    seen = set[str]()
    for token in tokens(options.package):
        for program in examples(f"{options.package}:{token}"):
            if program in seen:
                continue
            seen.add(program)
            counts["examples"] += 1
            try:
                made = made_by(program)
            except BaseException as error:  # the example needs a file, a setting or a lookup
                counts[f"not run: {type(error).__name__}"] += 1
                continue
            for kind, inputs in made:
                counts["resources"] += 1
                for rule, violation in book.broken_alone(kind, without_none(inputs)):
                    counts["refused"] += 1
                    print(f"{kind} {violation.path}: [{rule.id}] {violation.message}"[: options.shown])
    print(", ".join(f"{name} {count}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
