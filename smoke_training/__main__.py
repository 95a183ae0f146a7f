"""Entry point of the package and of the zip (`python smoke_training.zip node --plan plan.json`)."""

import sys

from smoke_training.cli import main

if __name__ == "__main__":
    sys.exit(main())
