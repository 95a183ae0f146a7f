"""Checks requirements.txt before a machine is billed: what it refers to must be in the folder, or reachable.

Lines are read as pip does (pip 25 pip/_internal/req/req_file.py and utils/encoding.py): a path in `-r` and
`-c` is relative to the file, any other to the folder in which the job runs pip.
"""

import codecs
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from infra.errors import Problem
from infra.jobs.packing.names import shown

REQUIREMENTS = "requirements.txt"
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FILES = ("-r", "--requirement", "-c", "--constraint")
_EDITABLE = ("-e", "--editable")
_INDEXES = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links")
_SHORT = re.compile(r"(-[rcefi])(?=[^\s=-])")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
_ARCHIVE = re.compile(r"\.(?:whl|zip|tar\.gz|tgz|tar\.bz2|tar\.xz)(?:\[.*\])?$", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PROJECTS = ("pyproject.toml", "setup.py")
# Distributions for Windows alone, which `pip freeze` lists there.
_WINDOWS = frozenset({"pywin32", "pypiwin32", "pywinpty", "windows-curses", "pywin32-ctypes", "wmi"})
_LINUX = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "platform_machine": "x86_64",
}


class RequirementFiles:
    """requirements.txt of a folder and the files that it includes, from the contents of a pack."""

    def __init__(
        self, contents: Mapping[str, bytes], links: Mapping[str, str], folders: frozenset[str]
    ) -> None:
        self._contents, self._links, self._folders = contents, links, folders
        self.warnings: list[Problem] = []
        self._seen: set[str] = set()
        self._index = False
        self._local: list[tuple[str, str]] = []

    def problems(self) -> Iterator[Problem]:
        """Lines that fail in the job; afterwards, `warnings` has those that may fail."""
        if REQUIREMENTS not in self._contents and REQUIREMENTS not in self._links:
            return
        yield from self._file(REQUIREMENTS)
        if not self._index:
            for place, text in self._local:
                rule = "is a build that is not on PyPI, and the file names no index that has it"
                fix = (
                    "Add --extra-index-url, or remove the part from + on, unless the image has this version."
                )
                self.warnings.append(Problem(place, text, rule, fix, code="requirement-without-index"))

    def _file(self, path: str) -> Iterator[Problem]:
        path = self._links.get(path, path)
        if path in self._seen:
            return
        self._seen.add(path)
        text = _decoded(self._contents[path])
        if text is None:
            rule, fix = "is not in UTF-8, which pip in the job expects", "Save it as UTF-8."
            yield Problem(shown(path), None, rule, fix, code="requirements-encoding")
            return
        for number, line in _lines(text):
            yield from self._line(path, f"{shown(path)}:{number}", line)

    def _line(self, path: str, place: str, line: str) -> Iterator[Problem]:
        if _VARIABLE.search(line):
            rule = "needs a variable of the environment, which the job does not have unless its image sets it"
            fix = "Store packages of a private index as wheels in the folder."
            self.warnings.append(Problem(place, None, rule, fix, code="requirement-needs-variable"))
        if not line.startswith("-"):
            yield from self._requirement(place, re.split(r"\s+--?[a-z]", line, maxsplit=1)[0])
            return
        try:
            words = [part for word in shlex.split(line) for part in _parts(word)]
        except ValueError:
            yield _invalid(place, line, "has an unclosed quote")
            return
        for option, value in itertools.pairwise(words):
            if option in _FILES:
                yield from self._included(path, place, value)
            elif option in _EDITABLE:
                yield from self._requirement(place, value)
            elif option in _INDEXES:
                self._index = True
                yield from self._address(place, value, index=True)

    def _included(self, path: str, place: str, value: str) -> Iterator[Problem]:
        if re.match(r"https?:", value):
            yield from self._address(place, value)
            return
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), value.replace("\\", "/")))
        if target in self._contents or target in self._links:
            yield from self._file(target)
        else:
            yield self._missing(place, value)

    def _requirement(self, place: str, text: str) -> Iterator[Problem]:
        if re.match(r"(?:git\+)?git@", text):
            yield self._by_key(place, text)
            return
        name, at, address = text.partition("@")
        url = address.strip() if at and re.fullmatch(r"\s*[\w.-]+\s*(\[.*\])?\s*", name) else text
        if re.match(r"[a-z][a-z0-9+.-]+:", url, re.IGNORECASE) and not _DRIVE.match(url):
            yield from self._address(place, url.split(" ;")[0].strip())
        elif _is_path(url):
            yield from self._path(place, url)
        else:
            yield from self._package(place, text)

    def _path(self, place: str, text: str) -> Iterator[Problem]:
        target = posixpath.normpath(re.sub(r"\[[^\]]*\]$", "", text).replace("\\", "/"))
        is_folder = target == "." or target in self._folders
        inside = "" if target == "." else f"{target}/"
        if target in self._contents or target in self._links:
            return
        if not is_folder:
            yield self._missing(place, text)
        elif not any(f"{inside}{project}" in self._contents for project in _PROJECTS):
            rule, fix = "is a folder without pyproject.toml and setup.py", "Remove the line, or add the file."
            yield Problem(place, text, rule, fix, code="requirement-without-project")

    def _address(self, place: str, url: str, *, index: bool = False) -> Iterator[Problem]:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            yield _invalid(place, None, str(error))
            return
        user, password = parts.username or "", unquote(parts.password or "")
        secret = password or (user if len(user) >= 16 and not parts.scheme.endswith("ssh") else "")
        if secret and not _VARIABLE.fullmatch(secret):
            rule = "has a password or token in its address; readers of the bucket could read it"
            fix = "Remove it, and store the package as a wheel in the folder."
            yield Problem(place, None, rule, fix, code="file-holds-secret")
        elif parts.scheme in ("ssh", "git+ssh"):
            yield self._by_key(place, url)
        elif parts.scheme == "file" and not parts.netloc and not parts.path.startswith("/"):
            # Relative to the folder, as for pip (pip/_internal/utils/urls.py, url_to_path).
            yield from self._path(place, unquote(parts.path))
        elif parts.scheme in ("file", "git+file"):
            yield self._missing(place, url)
        elif index and not parts.scheme and _is_path(url):
            target = posixpath.normpath(url.replace("\\", "/"))
            if target not in self._folders and target != ".":
                yield self._missing(place, url)

    def _package(self, place: str, text: str) -> Iterator[Problem]:
        try:
            found = Requirement(text)
        except InvalidRequirement as error:
            yield _invalid(place, text, str(error).splitlines()[0])
            return
        if found.marker is not None and not found.marker.evaluate(_LINUX):
            return
        if canonicalize_name(found.name) in _WINDOWS:
            fix = "Remove the line, or add: ; sys_platform == 'win32'."
            yield Problem(place, text, "exists for Windows only", fix, code="requirement-not-for-linux")
        elif any(one.operator == "==" and "+" in one.version for one in found.specifier):
            self._local.append((place, text))

    def _by_key(self, place: str, text: str) -> Problem:
        rule, fix = (
            "needs an SSH key, which the job does not have",
            "Use git+https://, or a wheel in the folder.",
        )
        return Problem(place, text, rule, fix, code="requirement-needs-key")

    def _missing(self, place: str, text: str) -> Problem:
        rule = "names a file that is not sent with the folder"
        fix = (
            "Put it into the folder, or name the version; conda: pip list --format=freeze > requirements.txt."
        )
        return Problem(place, text, rule, fix, code="requirement-not-packed")


def _invalid(place: str, text: str | None, reason: str) -> Problem:
    fix = "Write it as pip does: name==1.0. From conda: pip list --format=freeze."
    return Problem(place, text, f"is no requirement of pip: {reason}", fix, code="requirement-invalid")


def _is_path(text: str) -> bool:
    name = re.sub(r"\[[^\]]*\]$", "", text)
    return bool(name.startswith(".") or "/" in name or "\\" in name or _ARCHIVE.search(text))


def _decoded(content: bytes) -> str | None:
    encoding = "utf-8"
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            content, encoding = content[len(mark) :], name
            break
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Requirements and options with their line; a backslash joins lines, comments are removed."""
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.endswith("\\") and not _COMMENT.match(line):
            joined += line.rstrip("\\")
            continue
        whole = _COMMENT.sub("", joined + line).strip()
        if whole:
            yield start, whole
        joined, start = "", 0
    if joined.strip():
        yield start, joined.strip()


def _parts(word: str) -> list[str]:
    """An option and its value: `--requirement=x`, `-rx`."""
    if word.startswith("--") and "=" in word:
        option, _, value = word.partition("=")
        return [option, value]
    return _SHORT.sub(r"\1 ", word, count=1).split(" ", 1) if _SHORT.match(word) else [word]
