"""SageMaker's training toolkit: the program of an AWS image, which starts the user's script.

It takes `sagemaker_program` from the folder that `sagemaker_submit_directory` names, and passes every other
hyperparameter as an option, by name. Source: aws/sagemaker-training-toolkit, src/sagemaker_training/params.py
(names of the toolkit's own), mapping.py (to_cmd_args), entry_point.py and files.py (a folder is copied to
/opt/ml/code). Not emulated: archives in buckets, programs other than Python, distributions.
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.jobs.aws.sagemaker.failures import TrainingJobError

PROGRAM, FOLDER = "sagemaker_program", "sagemaker_submit_directory"
METRIC = "_tuning_objective_metric"
_PREFIX = "sagemaker_"


def starts(request: Mapping[str, Any]) -> bool:
    """Return whether the toolkit starts a job."""
    entrypoint = (request.get("AlgorithmSpecification") or {}).get("ContainerEntrypoint")
    return not entrypoint and PROGRAM in (request.get("HyperParameters") or {})


def command(request: Mapping[str, Any], ml: Path) -> list[str]:
    """Command in a machine whose /opt/ml is `ml`; copies the program there. Raises TrainingJobError."""
    given = request["HyperParameters"]
    source, program = str(given.get(FOLDER) or ""), str(given[PROGRAM])
    folder = ml / source.removeprefix("/opt/ml/")
    if not source.startswith("/opt/ml/") or not program.endswith(".py"):
        raise TrainingJobError(
            f"ClientError: A rehearsal starts a .py of a folder below /opt/ml, not {source}/{program}"
        )
    if not (folder / program).is_file():
        raise TrainingJobError(f"AlgorithmError: {source} holds no {program}, exit code: 1")
    shutil.copytree(folder, ml / "code", dirs_exist_ok=True)
    own = {
        name: str(value) for name, value in given.items() if not name.startswith(_PREFIX) and name != METRIC
    }
    options = [
        word
        for name, value in sorted(own.items())
        for word in (f"--{name}" if len(name) > 1 else f"-{name}", value)
    ]
    return [sys.executable, str(ml / "code" / program), *options]
