"""Entry point of the package and of the zip (`python smoke_training.zip node --plan plan.json`)."""

import sys
import traceback

ERROR = 3  # exit code of that verdict (`model.EXIT_CODES`), as a literal: imports may have failed
STOPPED = "ERROR stopped by SIGINT before anything was recorded"

if __name__ == "__main__":
    try:  # a run has handlers of its own, later: importing them takes a moment
        from smoke_training.cli import main

        sys.exit(main())
    except KeyboardInterrupt:
        sys.stderr.write(f"{STOPPED}\n")
        sys.exit(ERROR)
    except Exception:  # else Python exits with 1, the code of FAIL
        traceback.print_exc()
        sys.exit(ERROR)
