"""Which verdicts open a gate (pure).

A job that is awaited succeeds or fails by its exit status, so what the plan accepts has to leave as 0.
"""

from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.plan import Plan


def opens(plan: Plan, verdict: Verdict) -> bool:
    """Whether the plan accepts the verdict; FAIL and ERROR are never accepted."""
    return verdict not in (Verdict.FAIL, Verdict.ERROR) and str(verdict) in plan.accept


def exit_code(plan: Plan, verdict: Verdict) -> int:
    """0 for a verdict that opens the gate, else the verdict's own code."""
    return 0 if opens(plan, verdict) else EXIT_CODES[verdict]
