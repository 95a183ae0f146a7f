"""Supported pairs of profile and cloud. `stacks` implements exactly these; a test compares both."""

PROFILES = ("small", "small-cluster", "medium", "large", "large-slurm")
CLOUDS = ("aws", "gcp", "existing")
SUPPORTED: frozenset[tuple[str, str]] = frozenset(
    {
        ("small", "aws"),
        ("small", "gcp"),
        ("small-cluster", "aws"),
        ("small-cluster", "gcp"),
        ("medium", "aws"),
        ("medium", "gcp"),
        ("large", "aws"),
        ("large", "gcp"),
        ("large-slurm", "aws"),
        ("large-slurm", "gcp"),
    }
)


def pairs() -> str:
    """The supported pairs as text: `medium on aws, small on gcp`."""
    return ", ".join(f"{profile} on {cloud}" for profile, cloud in sorted(SUPPORTED))
