"""Changes about which code of a provider decides: conditions, and functions that compare values."""

from typing import Any

Case = tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], tuple[str, ...], tuple[str, ...]]
_SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
_RANGES: dict[str, Any] = {"secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.1.0.0/16"}]}
_ENDS = {"sendSecondaryIpRangeIfEmpty": True}
# Type, former inputs, what the cloud has besides, inputs, changed paths, paths that replace.
DECIDED: dict[str, Case] = {
    # Documentation of send_secondary_ip_range_if_empty.
    "ranges that are empty": (_SUBNETWORK, _RANGES, {}, {"secondaryIpRanges": []}, (), ()),
    "ranges that are left out": (_SUBNETWORK, _RANGES, {}, {}, (), ()),
    "ranges that end": (
        _SUBNETWORK,
        {**_RANGES, **_ENDS},
        {},
        {"secondaryIpRanges": [], **_ENDS},
        ("secondaryIpRanges[0]",),
        (),
    ),
    "ranges that end where they are left out": (
        _SUBNETWORK,
        {**_RANGES, **_ENDS},
        {},
        _ENDS,
        ("secondaryIpRanges[0]",),
        (),
    ),
    "no ranges": (_SUBNETWORK, _ENDS, {}, _ENDS, (), ()),
    # customizeDiffEngineVersionForceNewOnDowngrade, internal/service/elasticache/engine_version.go.
    **{
        f"version of {token}, {old} to {new}": (
            f"aws:elasticache/{token}",
            {"engine": "redis", "engineVersion": old},
            {},
            {"engine": "redis", "engineVersion": new},
            ("engineVersion",),
            ("engineVersion",) if older else (),
        )
        for token in ("cluster:Cluster", "replicationGroup:ReplicationGroup")
        for old, new, older in (("7.0", "7.1", False), ("7.1", "7.0", True), ("6.2", "6.x", False))
    },
    # CustomizeDiff of resourceCertificate: the domain is always among the names.
    "domain among the names": (
        "aws:acm/certificate:Certificate",
        {"domainName": "a.test", "subjectAlternativeNames": ["b.test"]},
        {"subjectAlternativeNames": ["a.test", "b.test"]},
        {"domainName": "a.test", "subjectAlternativeNames": ["b.test", "a.test"]},
        (),
        (),
    ),
    "domain no more among the names": (
        "aws:acm/certificate:Certificate",
        {"domainName": "a.test", "subjectAlternativeNames": ["b.test", "a.test"]},
        {},
        {"domainName": "a.test", "subjectAlternativeNames": ["b.test"]},
        (),
        (),
    ),
    "another name": (
        "aws:acm/certificate:Certificate",
        {"domainName": "a.test", "subjectAlternativeNames": ["b.test"]},
        {},
        {"domainName": "a.test", "subjectAlternativeNames": ["b.test", "c.test"]},
        ("subjectAlternativeNames[1]",),
        ("subjectAlternativeNames[1]",),
    ),
    # DiskImageDiffSuppress: an image by its family, with and without its project.
    "form of an image": (
        "gcp:compute/disk:Disk",
        {"name": "d", "image": "debian-cloud/debian-12"},
        {},
        {"name": "d", "image": "projects/debian-cloud/global/images/family/debian-12"},
        (),
        (),
    ),
    "another image": (
        "gcp:compute/disk:Disk",
        {"name": "d", "image": "debian-cloud/debian-12"},
        {},
        {"name": "d", "image": "debian-cloud/debian-11"},
        ("image",),
        ("image",),
    ),
    # iamMemberCaseDiffSuppress.
    "case of a member": (
        "gcp:projects/iAMMember:IAMMember",
        {"project": "p", "role": "roles/viewer", "member": "user:Bob@example.com"},
        {},
        {"project": "p", "role": "roles/viewer", "member": "user:bob@example.com"},
        (),
        (),
    ),
    "case of an identity of a pool": (
        "gcp:storage/bucketIAMMember:BucketIAMMember",
        {"bucket": "b", "role": "roles/viewer", "member": "principal://iam.googleapis.com/A"},
        {},
        {"bucket": "b", "role": "roles/viewer", "member": "principal://iam.googleapis.com/a"},
        ("member",),
        ("member",),
    ),
    "case of members": (
        "gcp:projects/iAMBinding:IAMBinding",
        {"project": "p", "role": "roles/viewer", "members": ["user:Bob@example.com", "user:a@example.com"]},
        {},
        {"project": "p", "role": "roles/viewer", "members": ["user:a@example.com", "user:bob@example.com"]},
        (),
        (),
    ),
    "fewer subnets of a network balancer": (
        "aws:lb/loadBalancer:LoadBalancer",
        {"loadBalancerType": "network", "subnets": ["subnet-a", "subnet-b"]},
        {},
        {"loadBalancerType": "network", "subnets": ["subnet-b"]},
        ("subnets[0]",),
        ("subnets[0]",),
    ),
    "more subnets of a network balancer": (
        "aws:lb/loadBalancer:LoadBalancer",
        {"loadBalancerType": "network", "subnets": ["subnet-a"]},
        {},
        {"loadBalancerType": "network", "subnets": ["subnet-b", "subnet-a"]},
        ("subnets[0]",),
        (),
    ),
    "the first security group of a network balancer": (
        "aws:lb/loadBalancer:LoadBalancer",
        {"loadBalancerType": "network", "subnets": ["subnet-a"]},
        {},
        {"loadBalancerType": "network", "subnets": ["subnet-a"], "securityGroups": ["sg-a"]},
        ("securityGroups",),
        ("securityGroups",),
    ),
    "user data that replaces": (
        "aws:ec2/instance:Instance",
        {"ami": "ami-1", "userData": "a", "userDataReplaceOnChange": True},
        {},
        {"ami": "ami-1", "userData": "b", "userDataReplaceOnChange": True},
        ("userData",),
        ("userData",),
    ),
    "tenancy by default": (
        "aws:ec2/vpc:Vpc",
        {"cidrBlock": "10.0.0.0/16", "instanceTenancy": "dedicated"},
        {},
        {"cidrBlock": "10.0.0.0/16", "instanceTenancy": "default"},
        ("instanceTenancy",),
        (),
    ),
}
