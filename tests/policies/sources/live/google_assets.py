"""Recorded resources of Google Cloud in the format of its APIs.

What is made here is held against discovery documents (google_fields.py), so it cannot be what a table happens
to read.
"""

from collections.abc import Callable, Mapping
from typing import Any

from policies.resource import Resource
from tests.trainstack.collect.project import BILLING, ID, NUMBER, Project

_LINK = "https://www.googleapis.com/compute/v1/"
Props = Mapping[str, Any]


def _some(**given: Any) -> dict[str, Any]:
    """What is set: APIs leave out the rest, and what is false."""
    return {name: value for name, value in given.items() if value not in (None, False)}


def _link(path: Any) -> str:
    return f"{_LINK}{str(path).removeprefix(_LINK)}"


def _network(project: Project, one: Props) -> str:
    path = f"projects/{ID}/global/networks/{one['name']}"
    data = _some(
        name=one["name"], autoCreateSubnetworks=one.get("autoCreateSubnetworks"), selfLink=_link(path)
    )
    project.add("compute.googleapis.com/Network", f"//compute.googleapis.com/{path}", data)
    return path


def _subnetwork(project: Project, one: Props) -> str:
    path = f"projects/{ID}/regions/{one['region']}/subnetworks/{one['name']}"
    logs = one.get("logConfig")
    data = _some(
        name=one["name"],
        ipCidrRange=one["ipCidrRange"],
        logConfig={**logs, "enable": True} if logs else None,
        network=_link(one["network"]),
        purpose=one.get("purpose"),
        region=_link(f"projects/{ID}/regions/{one['region']}"),
        selfLink=_link(path),
    )
    project.add("compute.googleapis.com/Subnetwork", f"//compute.googleapis.com/{path}", data)
    return path


def _firewall(project: Project, one: Props) -> str:
    path = f"projects/{ID}/global/firewalls/{one['name']}"
    rows = [_some(IPProtocol=row["protocol"], ports=row.get("ports")) for row in one["allows"]]
    data = _some(
        name=one["name"],
        allowed=rows,
        direction=one["direction"],
        network=_link(f"projects/{ID}/global/networks/{one['network']}"),
        priority=one["priority"],
        selfLink=_link(path),
        sourceRanges=one.get("sourceRanges"),
    )
    project.add("compute.googleapis.com/Firewall", f"//compute.googleapis.com/{path}", data)
    return path


def _place(location: str) -> str:
    """Asset names have zones and other places apart."""
    return f"{'zones' if location.count('-') == 2 else 'locations'}/{location}"


def _ends(one: Props) -> dict[str, Any] | None:
    ends = (one.get("controlPlaneEndpointsConfig") or {}).get("ipEndpointsConfig")
    return {"ipEndpointsConfig": {"enabled": ends["enabled"]}} if ends else None


def _cluster(project: Project, one: Props) -> str:
    named, private = one.get("masterAuthorizedNetworksConfig"), one.get("privateClusterConfig") or {}
    logs = one.get("loggingConfig")
    scaling = one.get("clusterAutoscaling")
    channel = (one.get("releaseChannel") or {}).get("channel")
    data = _some(
        name=one["name"],
        autopilot={"enabled": True} if one.get("enableAutopilot") else None,
        autoscaling=_provisioning(scaling) if scaling else None,
        controlPlaneEndpointsConfig=_ends(one),
        databaseEncryption=one.get("databaseEncryption"),
        location=one["location"],
        locations=[
            *(one.get("nodeLocations") or ()),
            *([one["location"]] if one["location"].count("-") == 2 else ()),
        ],
        loggingConfig={"componentConfig": _some(**logs)} if logs else None,
        loggingService=one.get("loggingService"),
        masterAuth={"clusterCaCertificate": "LS0t", "password": "s3cr3t"},
        masterAuthorizedNetworksConfig={**named, "enabled": True} if named else {},
        networkConfig=_some(
            network=one.get("network"),
            subnetwork=one.get("subnetwork"),
            datapathProvider=one.get("datapathProvider"),
        ),
        networkPolicy=_some(enabled=(one.get("networkPolicy") or {}).get("enabled")) or None,
        nodePools=[],
        privateClusterConfig=_some(enablePrivateEndpoint=private.get("enablePrivateEndpoint")) or None,
        releaseChannel={} if channel in (None, "UNSPECIFIED") else {"channel": channel},
        resourceLabels=one.get("resourceLabels"),
        workloadIdentityConfig=one.get("workloadIdentityConfig"),
    )
    name = f"projects/{ID}/{_place(one['location'])}/clusters/{one['name']}"
    if not one.get("removeDefaultNodePool"):
        pool = {"name": "default-pool", "config": one.get("nodeConfig") or {"machineType": "e2-medium"}}
        data["nodePools"].append(pool)
        _pool_asset(project, f"{name}/nodePools/default-pool", pool)
    project.add("container.googleapis.com/Cluster", f"//container.googleapis.com/{name}", data)
    return f"projects/{ID}/locations/{one['location']}/clusters/{one['name']}"


def _provisioning(scaling: Any) -> dict[str, Any]:
    rows = [
        {name: str(value) if name != "resourceType" else value for name, value in row.items()}
        for row in scaling.get("resourceLimits") or ()
    ]
    return _some(enableNodeAutoprovisioning=scaling.get("enabled"), resourceLimits=rows)


def _pool_asset(project: Project, path: str, data: dict[str, Any]) -> None:
    project.add("container.googleapis.com/NodePool", f"//container.googleapis.com/{path}", data)


def _config(node: Any) -> dict[str, Any]:
    cards = [
        _some(
            acceleratorCount=str(card["count"]),
            acceleratorType=card["type"],
            gpuDriverInstallationConfig=card.get("gpuDriverInstallationConfig"),
        )
        for card in node.get("guestAccelerators") or ()
    ]
    plain = (
        *("machineType", "imageType", "labels", "resourceLabels", "diskSizeGb", "spot", "preemptible"),
        *("flexStart", "gvnic", "workloadMetadataConfig", "serviceAccount", "oauthScopes"),
    )
    return _some(
        accelerators=cards or None,
        metadata={"disable-legacy-endpoints": "true", "startup": "s3cr3t"},
        taints=node.get("taints") or node.get("effectiveTaints"),
        **{name: node.get(name) for name in plain},
    )


def _pool(project: Project, one: Props) -> str:
    cluster, location = one["cluster"].rpartition("/")[2], one["location"]
    short = f"{cluster}/nodePools/{one['name']}"
    scaling, groups = one.get("autoscaling"), []
    zones = one.get("nodeLocations") or [location]
    for zone in zones:
        path = f"projects/{ID}/zones/{zone}/instanceGroupManagers/gke-{cluster}-{one['name']}-grp"
        groups.append(_link(path))
        size = {
            "name": path.rpartition("/")[2],
            "selfLink": _link(path),
            "targetSize": one.get("nodeCount") or 0,
        }
        project.add("compute.googleapis.com/InstanceGroupManager", f"//compute.googleapis.com/{path}", size)
    data = _some(
        name=one["name"],
        autoscaling={**_some(**scaling), "enabled": True} if scaling else {},
        config=_config(one.get("nodeConfig") or {}),
        initialNodeCount=one.get("initialNodeCount"),
        instanceGroupUrls=groups,
        locations=zones,
        management=_some(**(one.get("management") or {})),
        networkConfig=one.get("networkConfig"),
        placementPolicy=one.get("placementPolicy"),
    )
    _pool_asset(project, f"projects/{ID}/{_place(location)}/clusters/{short}", data)
    for asset in project.assets.get("container.googleapis.com/Cluster", ()):
        if asset["resource"]["data"]["name"] == cluster:
            asset["resource"]["data"]["nodePools"].append(data)
    return f"projects/{ID}/locations/{location}/clusters/{short}"


def _bucket(project: Project, one: Props) -> str:
    rules = []
    for rule in one.get("lifecycleRules") or ():
        when = dict(rule.get("condition") or {})
        state = when.pop("withState", "ANY")
        more = {} if state == "ANY" else {"isLive": state == "LIVE"}
        rules.append({"action": rule["action"], "condition": {**when, **more}})
    access = {
        "publicAccessPrevention": one.get("publicAccessPrevention"),
        "uniformBucketLevelAccess": {"enabled": False},
    }
    data = _some(
        name=one["name"],
        encryption=one.get("encryption"),
        iamConfiguration=access,
        labels=one.get("labels"),
        lifecycle={"rule": rules} if rules else None,
        location=one["location"],
        logging=one.get("logging"),
        projectNumber=NUMBER,
        versioning=one.get("versioning"),
    )
    project.add("storage.googleapis.com/Bucket", f"//storage.googleapis.com/{one['name']}", data)
    return str(one["name"])


def _sql(project: Project, one: Props) -> str:
    settings = one["settings"]
    data = _some(
        name=one["name"],
        databaseVersion=one["databaseVersion"],
        instanceType=one["instanceType"],
        region=one["region"],
        rootPassword="s3cr3t",
        settings=_some(
            backupConfiguration=_some(**(settings.get("backupConfiguration") or {})),
            deletionProtectionEnabled=settings.get("deletionProtectionEnabled"),
            edition=settings["edition"],
            ipConfiguration=_some(**(settings.get("ipConfiguration") or {})),
            tier=settings["tier"],
        ),
    )
    name = f"//cloudsql.googleapis.com/projects/{ID}/instances/{one['name']}"
    project.add("sqladmin.googleapis.com/Instance", name, data)
    return str(one["name"])


def _ring(project: Project, one: Props) -> str:
    path = f"projects/{ID}/locations/{one['location']}/keyRings/{one['name']}"
    project.add("cloudkms.googleapis.com/KeyRing", f"//cloudkms.googleapis.com/{path}", {"name": path})
    return path


def _key(project: Project, one: Props) -> str:
    path = f"{one['keyRing']}/cryptoKeys/{one['name']}"
    primary = {"name": f"{path}/cryptoKeyVersions/1", "state": "ENABLED"}
    data = _some(name=path, primary=primary, purpose=one["purpose"], rotationPeriod=one.get("rotationPeriod"))
    project.add("cloudkms.googleapis.com/CryptoKey", f"//cloudkms.googleapis.com/{path}", data)
    return path


def _repository(project: Project, one: Props) -> str:
    path = f"projects/{ID}/locations/{one['location']}/repositories/{one['repositoryId']}"
    docker = one.get("dockerConfig")
    data = _some(
        name=path,
        dockerConfig=_some(**docker) if docker else None,
        format=one["format"],
        mode=one["mode"],
        vulnerabilityScanningConfig=one.get("vulnerabilityScanningConfig"),
    )
    name = f"//artifactregistry.googleapis.com/{path}"
    project.add("artifactregistry.googleapis.com/Repository", name, data)
    return path


def _log_bucket(project: Project, one: Props) -> str:
    name = f"projects/{NUMBER}/locations/{one['location']}/buckets/{one['bucketId']}"
    data = {"name": name, "lifecycleState": "ACTIVE", "retentionDays": one["retentionDays"]}
    project.add("logging.googleapis.com/LogBucket", f"//logging.googleapis.com/{name}", data)
    return f"projects/{ID}/locations/{one['location']}/buckets/{one['bucketId']}"


def _budget(project: Project, one: Props) -> str:
    reported, chosen = one.get("allUpdatesRule"), dict(one.get("budgetFilter") or {})
    if "labels" in chosen:
        chosen["labels"] = {key: [value] for key, value in chosen["labels"].items()}
    name = f"{BILLING}/budgets/{one['name']}"
    data = _some(
        name=name, budgetFilter=chosen, notificationsRule=reported, thresholdRules=one.get("thresholdRules")
    )
    project.rows.setdefault(f"billingbudgets/v1/{BILLING}/budgets", []).append(data)
    return name


def _account(project: Project, one: Props) -> str:
    data = {"name": one["name"], "email": one["email"], "projectId": ID, "uniqueId": one["uniqueId"]}
    name = f"//iam.googleapis.com/projects/{ID}/serviceAccounts/{one['uniqueId']}"
    project.add("iam.googleapis.com/ServiceAccount", name, data)
    return str(one["name"])


def _account_key(project: Project, one: Props) -> str:
    name = f"//iam.googleapis.com/{one['name']}"
    data = {"name": one["name"], "keyAlgorithm": one["keyAlgorithm"], "keyType": "USER_MANAGED"}
    project.add("iam.googleapis.com/ServiceAccountKey", name, data)
    google = {"name": f"{one['name']}-of-google", "keyType": "SYSTEM_MANAGED"}
    project.add("iam.googleapis.com/ServiceAccountKey", f"{name}-of-google", google)
    return str(one["name"])


def _account_member(project: Project, one: Props) -> str:
    (name,) = (
        row["name"]
        for row in project.assets["iam.googleapis.com/ServiceAccount"]
        if row["resource"]["data"]["name"] == one["serviceAccountId"]
    )
    binding = {"role": one["role"], "members": [one["member"]]}
    project.policies.append({"name": name, "iamPolicy": {"bindings": [binding]}})
    return f"{one['serviceAccountId']}/{one['role']}"


def _member(project: Project, one: Props) -> str:
    project.policy["bindings"].append({"role": one["role"], "members": [one["member"]]})
    return f"{ID}/{one['role']}"


MAKERS: Mapping[str, Callable[[Project, Props], str]] = {
    "gcp:artifactregistry/repository:Repository": _repository,
    "gcp:billing/budget:Budget": _budget,
    "gcp:compute/firewall:Firewall": _firewall,
    "gcp:compute/network:Network": _network,
    "gcp:compute/subnetwork:Subnetwork": _subnetwork,
    "gcp:container/cluster:Cluster": _cluster,
    "gcp:container/nodePool:NodePool": _pool,
    "gcp:kms/cryptoKey:CryptoKey": _key,
    "gcp:kms/keyRing:KeyRing": _ring,
    "gcp:logging/projectBucketConfig:ProjectBucketConfig": _log_bucket,
    "gcp:projects/iAMMember:IAMMember": _member,
    "gcp:serviceaccount/account:Account": _account,
    "gcp:serviceaccount/iAMMember:IAMMember": _account_member,
    "gcp:serviceaccount/key:Key": _account_key,
    "gcp:sql/databaseInstance:DatabaseInstance": _sql,
    "gcp:storage/bucket:Bucket": _bucket,
}
UNSEEN = ("gcp:compute/globalAddress:GlobalAddress", "gcp:servicenetworking/connection:Connection")
"""Types that no rule looks at."""
_FIRST = ("gcp:serviceaccount/account:Account", "gcp:container/cluster:Cluster")


def filled(kept: list[Resource]) -> tuple[Project, dict[str, str]]:
    """(a project with these resources, the URN of each by the id that it has there)."""
    project, ids = Project(), {}
    for one in sorted(kept, key=lambda one: one.kind not in _FIRST):
        if one.kind in MAKERS:
            ids[MAKERS[one.kind](project, one.props)] = one.urn
    return project, ids
