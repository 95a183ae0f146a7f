"""Types that a project never reports: their effect is part of another type."""

ABSENT = frozenset(
    # A member is part of a binding.
    (
        "gcp:projects/iAMMember:IAMMember",
        "gcp:folder/iAMMember:IAMMember",
        "gcp:organizations/iAMMember:IAMMember",
        "gcp:serviceaccount/iAMMember:IAMMember",
    )
)
UNREPORTED = {
    "kubernetes:": "a project does not report objects in its clusters; audit a state, or a cluster",
    "gcp:": "resources of this type are not read from a project",
}
