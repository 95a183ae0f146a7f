"""Types that a cluster never reports: a program that uses them creates other objects."""

ABSENT = frozenset(
    (
        # A chart is reported as the objects that it creates.
        "kubernetes:helm.sh/v3:Chart",
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:helm.sh/v4:Chart",
        # A patch is part of the object that it changes.
        "kubernetes:core/v1:ConfigMapPatch",
    )
)
_CLOUD = "a cluster does not report cloud resources; audit a state, or an account"
UNREPORTED = {
    "kubernetes:": "objects of this kind are not read from a cluster",
    "aws:": _CLOUD,
    "gcp:": _CLOUD,
}
