"""The code of a validation, as this checkout ships it."""

from infra.errors import Problem, UserError
from smoke_training.launchers import bundle


def shipped() -> bundle.Bundle:
    """The workload as one zip. Raises UserError for a checkout whose workload cannot be shipped."""
    try:
        return bundle.shipped()
    except bundle.BundleError as error:
        fix = "Restore smoke_training from version control."
        raise UserError([Problem("smoke_training", None, rule, fix) for rule in error.problems]) from error
