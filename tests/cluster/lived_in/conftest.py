"""One lived-in stack for the tests of this folder; each test starts from the shipped spec, without jobs."""

from collections.abc import Iterator

import pytest

from rehearsal.controlplane import binaries
from tests.cluster.lived_in.stack import LivedIn, lived_in
from tests.cluster.lived_in.users import Users


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivedIn]:
    if binaries.ready() is None:
        pytest.skip("the control plane is not built here: `make binaries` builds it, and says why it cannot")
    with lived_in(tmp_path_factory.mktemp("lived-in")) as made:
        yield made


@pytest.fixture
def lived(shared: LivedIn) -> Iterator[LivedIn]:
    """The stack, with its nodes; after the test the shipped spec is deployed again, without users' jobs."""
    yield shared
    Users(shared.api).leave()
    shared.reset()


@pytest.fixture
def users(lived: LivedIn) -> Users:
    return Users(lived.api)
