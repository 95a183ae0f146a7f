"""Language hosts of Node.js and Go, and the generator of SDKs, for a CLI that was built from source.

An official CLI brings its own. The modules of these hosts cannot be downloaded as the CLI's own module can,
so this host runs programs as they do (sources: sdk/nodejs/cmd/run/index.ts and sdk/go/pulumi/run.go of Pulumi
3.259). Run as a module, it builds the generator and puts the hosts beside the CLI: `make binaries`.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from infra.engine.golang import TOOLS, SetupError, build
from infra.engine.install import write_host
from infra.places import USER

FOLDER = USER / "bin"
_MODULE = TOOLS / "pulumi"
LANGUAGES = ("nodejs", "go")
"""Languages besides Python whose hosts are made here."""


class LanguageError(Exception):
    """A step of a program or SDK failed; the text is that of the tool."""


def generator() -> Path:
    """The program that writes SDKs, by its sources."""
    sources = hashlib.sha256((_MODULE / "go.sum").read_bytes())
    sources.update((_MODULE / "sdkgen" / "main.go").read_bytes())
    return FOLDER / f"sdkgen-{sources.hexdigest()[:12]}"


def ready() -> bool:
    """Return whether the CLI can run programs in Node.js and Go and write SDKs."""
    hosts = (FOLDER / f"pulumi-language-{language}" for language in LANGUAGES)
    return (FOLDER / "pulumi").exists() and generator().exists() and all(host.exists() for host in hosts)


def install() -> None:
    """Build the generator, once (half a minute after the CLI), and write the hosts. Raises SetupError."""
    if not (FOLDER / "pulumi").exists():
        return  # an official CLI brings its own hosts
    if not generator().exists():
        draft = generator().with_suffix(".draft")
        build(_MODULE, draft, "", "./sdkgen")
        draft.replace(generator())
    for language in LANGUAGES:
        write_host(FOLDER, Path(sys.executable), language)


def write_sdk(language: str, folder: Path, schema: str, loader: str) -> None:
    """Write the SDK of a package with this schema. Raises LanguageError."""
    if not generator().exists():
        raise LanguageError(
            "the generator of SDKs is not built; run `make binaries`, then repeat the command"
        )
    run([str(generator()), language, str(folder), loader], folder, input=schema)


def link(language: str, program: Path, sdks: Iterable[tuple[str, str]]) -> str:
    """Add SDKs (package, folder below the program's) to a program; returns what to import."""
    imports = []
    for package, path in sdks:
        match language:
            case "nodejs":
                name = json.loads((program / path / "package.json").read_text())["name"]
                manifest = program / "package.json"
                content = json.loads(manifest.read_text())
                content.setdefault("dependencies", {})[name] = f"file:{path}"
                manifest.write_text(json.dumps(content, indent=4) + "\n")
                imports.append(f'import * as {package} from "{name}";')
            case "go":
                text = (program / path / "go.mod").read_text()
                name = re.findall(r"^module (\S+)", text, re.MULTILINE)[0]
                edits = (f"-require={name}@v0.0.0", f"-replace={name}=./{path}")
                run(["go", "mod", "edit", *edits], program)
                imports.append(f'import "{name}/{package}"')
            case _:
                file = program / "requirements.txt"
                lines = file.read_text().splitlines() if file.exists() else []
                file.write_text("\n".join([*lines, *([path] if path not in lines else [])]) + "\n")
                imports.append(f"import pulumi_{package} as {package}")
    return "\n".join(imports)


def dependencies(language: str) -> Sequence[str] | None:
    """The command that installs a program's packages; None for Python, whose environment has them."""
    return {
        "nodejs": ("npm", "install", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved"),
        "go": ("go", "mod", "tidy"),
    }.get(language)


def command(language: str, program: Path, flags: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """Command of a program in Node.js or Go. Raises LanguageError when it is not installed or does not build.

    `flags` are those of Node.js; a Go program gets the same values as variables (`variables`).
    """
    if language == "go":
        # Outside of the program's folder, which a rehearsal leaves as it is.
        name = hashlib.sha256(str(program.resolve()).encode()).hexdigest()[:12]
        binary = USER / "programs" / name
        binary.parent.mkdir(parents=True, exist_ok=True)
        try:
            build(program, binary, "", ".")  # as the CLI was built, whose compiled packages are reused
        except SetupError as error:
            raise LanguageError(str(error)) from None
        return [str(binary), *arguments]
    start = program / "node_modules" / "@pulumi" / "pulumi" / "cmd" / "run"
    if not start.is_dir():
        raise LanguageError(f"{program} has no @pulumi/pulumi; run `npm install` there")
    return ["node", str(start), *(f"--{name}={value}" for name, value in flags.items()), ".", *arguments]


def variables(language: str, flags: Mapping[str, str]) -> dict[str, str]:
    """Variables from which a program learns what `flags` say to other languages."""
    if language == "nodejs":
        return {"PULUMI_NODEJS_TYPESCRIPT": "true"}
    names = ("organization", "project", "stack", "parallel", "monitor", "engine")
    found = {f"PULUMI_{name.upper()}": flags[name] for name in names}
    return {**found, "PULUMI_DRY_RUN": flags.get("dry-run", "false")}


def run(command: Sequence[str], folder: Path, **options: str) -> None:
    """Run a tool. Raises LanguageError with the end of its messages."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    except OSError as error:
        raise LanguageError(f"{command[0]} cannot be started: {error}") from None
    if done.returncode:
        raise LanguageError(f"{' '.join(command[:3])} failed:\n{(done.stderr or done.stdout)[-4000:]}")


if __name__ == "__main__":
    try:
        install()
    except SetupError as error:
        print(f"programs in TypeScript and Go are not rehearsed: {error}")  # noqa: T201
