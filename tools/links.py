"""Check the links of all Markdown files: relative links, anchors, and repository paths in backticks.

Run as `python tools/links.py`. A path in backticks counts as one of this repository when its first part is a
top-level folder. `<...>`, `*` and `...` in a path stand for any text. Decisions (`docs/adr/`) keep the
paths of their day, so only their links are checked.
"""

import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
DECISIONS = "docs/adr"
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
PATH = re.compile(r"[\w.*/{},<>-]+")
# Paths that exist only in a checkout that was used, or that a reader is to create.
CREATED = ("stacks/config/Pulumi.", ".trainstack/")


@cache
def tracked() -> frozenset[str]:
    """Files of the repository and their folders, relative to its root."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [PurePosixPath(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file()]
    return frozenset(str(one) for file in files for one in (file, *file.parents) if str(one) != ".")


@cache
def top() -> frozenset[str]:
    """Top-level folders."""
    return frozenset(path.partition("/")[0] for path in tracked() if "/" in path)


@cache
def anchors(page: str) -> frozenset[str]:
    """Anchors of a page's headings, as GitHub names them."""
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    counts: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(text):
        plain = re.sub(r"\]\([^)]*\)|[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        found.add(plain if not counts[plain] else f"{plain}-{counts[plain]}")
        counts[plain] += 1
    return frozenset(found)


def check(page: str) -> Iterator[str]:
    """Dead links and paths of a page, each as `file:line: text`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = FENCE.sub(lambda match: "\n" * match.group().count("\n"), text)
    for number, line in enumerate(prose.splitlines(), 1):
        for match in LINK.finditer(CODE.sub("", line)):
            if problem := _dead_link(page, match.group(1)):
                yield f"{page}:{number}: {problem}"
        if page.startswith(DECISIONS):
            continue
        for match in CODE.finditer(line):
            if _is_dead_path(match.group(1)):
                yield f"{page}:{number}: no such path in this repository: `{match.group(1)}`"


def _dead_link(page: str, address: str) -> str | None:
    if re.match(r"[a-z]+:", address):
        return None
    path, _, anchor = address.partition("#")
    target = page
    if path:
        joined = (ROOT / page).parent / path
        target = joined.resolve().relative_to(ROOT).as_posix() if ROOT in joined.resolve().parents else path
        if target not in tracked():
            return f"dead link: {address}"
    if anchor and target.endswith(".md") and anchor not in anchors(target):
        return f"dead anchor: {address}"
    return None


def _is_dead_path(text: str) -> bool:
    first, slash, rest = text.partition("/")
    if not slash or first not in top() or not rest or not PATH.fullmatch(text) or text.startswith(CREATED):
        return False
    return not all(_exists(one) for one in _alternatives(text.rstrip("/")))


def _alternatives(text: str) -> Iterator[str]:
    """`a/{b,c}/d` as `a/b/d`, `a/c/d`."""
    parts = [part.split(",") for part in re.split(r"[{}]", text)]
    for index, part in enumerate(re.split(r"[{}]", text)):
        if index % 2 == 0:
            parts[index] = [part]
    yield from ("".join(chosen) for chosen in itertools.product(*parts))


def _exists(path: str) -> bool:
    if not re.search(r"[<*]|\.\.\.", path):
        return path in tracked()
    pattern = re.sub(r"<[^>]*>|\*+|\.\.\.", "\0", path)
    shape = re.compile("[^/]*".join(re.escape(piece) for piece in pattern.split("\0")))
    return any(shape.fullmatch(one) for one in tracked())


def main() -> int:
    """Print every dead link. The exit code is 1 when there is one."""
    pages = sorted(path for path in tracked() if path.endswith(".md"))
    found = [problem for page in pages for problem in check(page)]
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
