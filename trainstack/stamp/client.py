"""Files of a client's folder: a pure function of choices and version of the package."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from infra import stackspec
from infra.engine.install import MINIMUM
from infra.errors import Problem, UserError
from infra.places import PROGRAM, STATE_NAME
from infra.stackspec import LoadedSpec
from trainstack.bootstrap import trust
from trainstack.stamp import folder as folders
from trainstack.stamp import lock, stack_file
from trainstack.stamp.choices import ClientChoices, check
from trainstack.stamp.clouds import STAMPED
from trainstack.stamp.environment import POLICIES, VENV

LOCKS = "locks"
"""Folder of the dependencies of pipelines, with their hashes."""
AUDIT, WAIVERS = "policies/audit.yaml", "policies/waivers.yaml"
_TEMPLATES = Path(__file__).parent / "templates"
_LOCKED = Path(__file__).parent / "locks"
_OPTION: Mapping[str, str] = {
    "region": "--region",
    "owner": "--owner",
    "budget.alert_emails": "--owner",
    "budget.monthly_usd": "--budget",
    "on.account_id": "--account",
    "on.project": "--account",
    "trainstack:region": "--region",
}
"""Options by the beginning of the paths whose values they set; whatever else is wrong comes with a region."""


@dataclass(frozen=True)
class ClientFiles:
    """Rendered files, by name in the client's folder, and the checked specs of the environments by stack."""

    choices: ClientChoices
    texts: Mapping[str, str]
    loaded: Mapping[str, LoadedSpec]

    @property
    def stamped(self) -> Mapping[str, str]:
        """The files with their lock, as a new client gets them."""
        stamp = lock.Stamp(lock.installed(), asdict(self.choices), self.texts)
        return {**self.texts, **lock.files(stamp)}


def render(choices: ClientChoices) -> ClientFiles:
    """Render the files of a client. The same choices and version give the same texts.

    Raises UserError with every problem of the choices, or of the specs that they make; its paths are options.
    """
    check(choices)
    choices = stack_file.completed(choices)
    texts = {
        **{f"Pulumi.{stack}.yaml": stack_file.text(choices, one) for stack, one in choices.stacks.items()},
        f"clients/{choices.name}.yaml": stack_file.layer(choices),
        **_documents(choices),
    }
    with tempfile.TemporaryDirectory() as folder:
        folders.write(texts, Path(folder))
        try:
            loaded = {stack: stackspec.load_file(stack, Path(folder)) for stack in choices.stacks}
        except UserError as error:
            raise UserError(_of_options(choices, error)) from None
    return ClientFiles(choices, texts, loaded)


def _documents(choices: ClientChoices) -> Mapping[str, str]:
    """Files whose text is a template of the same name."""
    values = {
        "client": choices,
        "stacks": choices.stacks,
        "login": trust,
        "package": lock.installed(),
        "minimum": ".".join(map(str, MINIMUM)),
        "program": PROGRAM,
        "venv": VENV,
        "pack": POLICIES,
        "state": STATE_NAME,
        "locks": LOCKS,
        "audit": AUDIT,
        "waivers": WAIVERS,
        "settings": stack_file.policy_settings(choices),
        "pool": stack_file.first_pool(choices),
    }
    engine, made = _engine(), _locks(choices, clustered=bool(values["pool"]))
    for source in sorted(engine.list_templates(extensions=["j2"])):
        name = re.sub(r"^dot-", ".", source.removesuffix(".j2"))  # wheels leave out hidden files
        if not name.endswith(".sh"):  # scripts are parts of pipelines
            made[name] = engine.get_template(source).render(values).rstrip("\n") + "\n"
    return made


def _locks(choices: ClientChoices, *, clustered: bool) -> dict[str, str]:
    """Dependencies that pipelines install, for Python 3.12 on Linux on x86-64 (`make lock`)."""
    head = f"# Rendered by trainstack {lock.installed()} for its pipelines; `trainstack update` renews it.\n"
    names = ["trainstack.lock", *(STAMPED[choices.cloud].cluster_locks if clustered else ())]
    return {f"{LOCKS}/{name}": head + (_LOCKED / name).read_text() for name in names}


@cache
def _engine() -> Environment:
    """Delimiters other than `{{ }}`, which pipelines use themselves."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, autoescape=False,  # noqa: S701 - no HTML
        variable_start_string="[[", variable_end_string="]]", block_start_string="[%", block_end_string="%]",
        comment_start_string="[#", comment_end_string="#]", trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    made.filters["dedent"] = lambda text, width: re.sub(rf"(?m)^ {{{width}}}", "", text).rstrip("\n") + "\n"
    return made


def _of_options(choices: ClientChoices, error: UserError) -> Iterator[Problem]:
    """One problem per option: environments differ in little, so that most have the same ones."""
    found: dict[tuple[str, str], Problem] = {}
    for one in error.problems:
        path = one.path.removeprefix("trainstack:spec.")
        option = next((option for start, option in _OPTION.items() if path.startswith(start)), "")
        rule = one.rule if option else f"{path} {one.value!r}: {one.rule}"
        if not option:
            advised = path.startswith(("layout.pools[0]", "layout.machines[0]")) and choices.machine
            option = "--from-advice" if advised else "--region"
        value = choices.machine if option == "--from-advice" else getattr(choices, option.removeprefix("--"))
        problem = Problem(option, value, rule, one.fix, code=one.code)
        found.setdefault((problem.path, problem.code), problem)
    yield from found.values()
