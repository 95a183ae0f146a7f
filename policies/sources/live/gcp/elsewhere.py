"""Types of which a project has none: what a program does with them shows as another type."""

ELSEWHERE = frozenset(
    # A member is one of a binding.
    (
        "gcp:projects/iAMMember:IAMMember",
        "gcp:folder/iAMMember:IAMMember",
        "gcp:organizations/iAMMember:IAMMember",
        "gcp:serviceaccount/iAMMember:IAMMember",
    )
)
BEYOND = {
    "kubernetes:": "a project does not tell what is in its clusters; audit a state, or a cluster",
    "gcp:": "nothing asks a project for resources of this type",
}
