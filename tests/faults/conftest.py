from collections.abc import Iterator

import pytest

from tests.faults.lab import Lab
from tests.faults.stand_ins import TWO_RAILS


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(2, TWO_RAILS) as found:
        yield found
