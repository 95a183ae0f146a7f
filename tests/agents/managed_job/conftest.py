"""Jobs around small scripts."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.agents.managed_job.managed import Managed, zipped
from tests.agents.managed_job.tracking import server

Make = Callable[..., Managed]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zipped(tmp_path_factory.mktemp("zip"))


@pytest.fixture
def job(archive: Path, tmp_path: Path) -> Iterator[Make]:
    """Makes a job of the text of a script, which is cleaned up whatever a test does."""
    made: list[Managed] = []

    def make(text: str, **environment: str) -> Managed:
        code = tmp_path / "code"
        code.mkdir(exist_ok=True)
        (code / "train.py").write_text(text)
        made.append(Managed(archive, tmp_path / "ml", "train.py", code, **environment))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowClient]:
    with server(tmp_path_factory.mktemp("mlflow")) as (address, _):
        yield MlflowClient(address)
