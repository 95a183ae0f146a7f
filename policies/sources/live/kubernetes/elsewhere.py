"""Types of which a cluster has none: what a program does with them shows as other objects."""

ELSEWHERE = frozenset(
    (
        # What a chart brings is told as the objects that it consists of.
        "kubernetes:helm.sh/v3:Chart",
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:helm.sh/v4:Chart",
        # A patch is part of what it changes.
        "kubernetes:core/v1:ConfigMapPatch",
    )
)
_CLOUD = "a cluster does not tell what is around it; audit a state, or an account"
BEYOND = {
    "kubernetes:": "nothing asks a cluster for objects of this kind",
    "aws:": _CLOUD,
    "gcp:": _CLOUD,
}
