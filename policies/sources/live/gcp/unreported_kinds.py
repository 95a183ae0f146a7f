"""Types that a project never reports: their effect is part of another type."""

from policies.resource import GOOGLE_GRANTS

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
        "gcp:storage/bucketIAMPolicy:BucketIAMPolicy",
        "gcp:storage/managedFolderIamMember:ManagedFolderIamMember",
        "gcp:storage/managedFolderIamBinding:ManagedFolderIamBinding",
        "gcp:storage/managedFolderIamPolicy:ManagedFolderIamPolicy",
        "gcp:storage/objectACL:ObjectACL",
        "gcp:storage/objectAccessControl:ObjectAccessControl",
    )
)
# Rules about these are decided by a state or a preview; a live audit says that it did not read them.
_PLAIN = "plain variables of this service are not read from a project; audit a state"
_NOT_READ = (
    "gcp:cloudfunctions/function:Function",
    "gcp:cloudfunctionsv2/function:Function",
    "gcp:cloudrun/service:Service",
    "gcp:cloudrunv2/job:Job",
    "gcp:cloudrunv2/service:Service",
    "gcp:cloudrunv2/workerPool:WorkerPool",
)
_FIREWALLS = (
    "gcp:compute/firewallPolicyRule:FirewallPolicyRule",
    "gcp:compute/firewallPolicyWithRules:FirewallPolicyWithRules",
    "gcp:compute/networkFirewallPolicyRule:NetworkFirewallPolicyRule",
    "gcp:compute/networkFirewallPolicyWithRules:NetworkFirewallPolicyWithRules",
    "gcp:compute/regionNetworkFirewallPolicyRule:RegionNetworkFirewallPolicyRule",
    "gcp:compute/regionNetworkFirewallPolicyWithRules:RegionNetworkFirewallPolicyWithRules",
)
UNREPORTED = {
    **dict.fromkeys(_NOT_READ, _PLAIN),
    **dict.fromkeys(_FIREWALLS, "firewall policies are not read from a project; audit a state"),
    **dict.fromkeys(GOOGLE_GRANTS, "its members are not read from a project; audit a state"),
    "kubernetes:": "a project does not report objects in its clusters; audit a state, or a cluster",
    "gcp:": "resources of this type are not read from a project",
}
