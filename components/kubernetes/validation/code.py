"""The code of a validation, bundled from this checkout."""

from infra.errors import Problem, UserError
from infra.launchers import bundle


def shipped() -> bundle.Bundle:
    """The workload as one zip. Raises UserError for a checkout without a complete workload."""
    try:
        return bundle.shipped()
    except bundle.BundleError as error:
        path, fix, code = "smoke_training", "Restore smoke_training from version control.", "code-incomplete"
        raise UserError([Problem(path, None, rule, fix, code=code) for rule in error.problems]) from error
