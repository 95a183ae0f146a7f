"""Program of one trial of a hyperparameter tuning job of SageMaker.

A tuning job has no command field, so the image's own program runs: SageMaker's training toolkit, which copies
the channel of the code to /opt/ml/code and runs this file with the trial's parameters as arguments
(aws/sagemaker-training-toolkit, src/sagemaker_training/entry_point.py and mapping.py). From here on a trial
is a run like any other, with its own name, folder of checkpoints and arguments. Standard library only.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence

NAME = "trainstack_trial.py"
COMMAND, START, ARGUMENTS = "TRAINSTACK_COMMAND", "TRAINSTACK_START", "TRAINSTACK_ARGUMENTS"
RUN, TRIAL, JOB = "TRAINSTACK_RUN", "TRAINSTACK_TRIAL", "TRAINING_JOB_NAME"


def begun(environment: Mapping[str, str], arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command of a node, and its environment. `arguments` follow those that all trials have."""
    name = environment[JOB]
    given = [*json.loads(environment.get(ARGUMENTS) or "[]"), *arguments]
    own = {RUN: name, TRIAL: name, ARGUMENTS: json.dumps(given, ensure_ascii=False)}
    return (
        ["bash", "-c", environment[START], "node", *json.loads(environment[COMMAND])],
        {**environment, **own},
    )


if __name__ == "__main__":
    command, found = begun(os.environ, sys.argv[1:])
    os.execvpe(command[0], command, found)  # noqa: S606 - the words of a request, as a container has them
