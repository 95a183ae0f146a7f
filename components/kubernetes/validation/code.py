"""The code of a validation, bundled from this checkout."""

from infra.errors import Problem, UserError
from smoke_training.launchers import bundle


def shipped() -> bundle.Bundle:
    """The workload as one zip. Raises UserError for a checkout without a complete workload."""
    try:
        return bundle.shipped()
    except bundle.BundleError as error:
        fix = "Restore smoke_training from version control."
        raise UserError(
            [
                Problem("smoke_training", None, rule, fix, code="smoke-training-incomplete")
                for rule in error.problems
            ]
        ) from error
