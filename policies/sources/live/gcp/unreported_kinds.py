"""Types that a project never reports: their effect is part of another type."""

ABSENT = frozenset(
    # A member is part of a binding.
    (
        "gcp:projects/iAMMember:IAMMember",
        "gcp:folder/iAMMember:IAMMember",
        "gcp:organizations/iAMMember:IAMMember",
        "gcp:serviceaccount/iAMMember:IAMMember",
        # A policy is all bindings together.
        "gcp:projects/iAMPolicy:IAMPolicy",
        "gcp:folder/iAMPolicy:IAMPolicy",
        "gcp:organizations/iAMPolicy:IAMPolicy",
        "gcp:serviceaccount/iAMPolicy:IAMPolicy",
        # A bucket is judged by its prevention of public access.
        "gcp:storage/bucketIAMMember:BucketIAMMember",
        "gcp:storage/bucketIAMBinding:BucketIAMBinding",
        "gcp:storage/bucketACL:BucketACL",
        "gcp:storage/bucketAccessControl:BucketAccessControl",
        "gcp:storage/defaultObjectACL:DefaultObjectACL",
        "gcp:storage/defaultObjectAccessControl:DefaultObjectAccessControl",
    )
)
UNREPORTED = {
    "kubernetes:": "a project does not report objects in its clusters; audit a state, or a cluster",
    "gcp:": "resources of this type are not read from a project",
}
