"""Expected problems of a UserError, by code and path."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from infra.errors import UserError


@contextmanager
def rejected(code: str, path: str = "") -> Iterator[None]:
    """Expect one problem with this code, whose path ends like this, and a fix."""
    with pytest.raises(UserError) as caught:
        yield
    ((found, where),) = caught.value.codes
    assert found == code and where.endswith(path), caught.value
    assert caught.value.problems[0].fix
