"""Which sizes exist on which clouds. `stacks` implements exactly these pairs; a test holds them together."""

PROFILES = ("small", "small-cluster", "medium", "large")
CLOUDS = ("aws", "gcp", "existing")
SUPPORTED: frozenset[tuple[str, str]] = frozenset(
    {
        ("small", "aws"),
        ("small", "gcp"),
        ("small-cluster", "aws"),
        ("small-cluster", "gcp"),
        ("medium", "aws"),
        ("medium", "gcp"),
    }
)


def pairs() -> str:
    """The pairs that exist, for people: `medium on aws, small on gcp`."""
    return ", ".join(f"{profile} on {cloud}" for profile, cloud in sorted(SUPPORTED))
