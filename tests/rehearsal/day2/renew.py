"""`python -m tests.rehearsal.day2.renew aws gcp` renews the lists after an intended change."""

import sys
import tempfile
from pathlib import Path

from tests.rehearsal.day2.describe import text
from tests.rehearsal.day2.stack import AWS, GCP

if __name__ == "__main__":
    for life in (life for life in (AWS, GCP) if life.pair[1] in sys.argv[1:]):
        with tempfile.TemporaryDirectory() as place, life.deployed(Path(place)) as running:
            for change, steps in life.plans(running).items():
                life.file(change).write_text(text(change, steps))
