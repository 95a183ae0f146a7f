"""The parts of a GKE cluster's configuration, each with its reasons."""

import pulumi
import pulumi_gcp as gcp

from components.gcp.cluster.cluster_args import GcpClusterArgs, MaintenanceArgs

# A day before any of our clusters: windows recur and upgrades are held from then on. A day that
# depended on the calendar would change the cluster with every deployment.
_EPOCH = "2026-01-01"
_HELD = "NO_MINOR_OR_NODE_UPGRADES"
LOGS = ("SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "CONTROLLER_MANAGER", "SCHEDULER")
# GPUs by GKE's own DCGM exporter, jobs, and reasons why a pod does not run; the control plane's own metrics
# are left out: they are for tuning it.
METRICS = (
    *("SYSTEM_COMPONENTS", "DCGM", "JOBSET", "KUBELET", "CADVISOR"),
    *("POD", "DEPLOYMENT", "STATEFULSET", "DAEMONSET", "STORAGE"),
)
_EVENTS = ("UPGRADE_EVENT", "UPGRADE_AVAILABLE_EVENT", "SECURITY_BULLETIN_EVENT")


def endpoints(args: GcpClusterArgs) -> gcp.container.ClusterControlPlaneEndpointsConfigArgs:
    """A DNS name with IAM, or an address with allowed ranges; never both.

    Client certificates and tokens of service accounts are not accepted at the DNS endpoint, only IAM.
    """
    by_name = args["endpoint"] == "dns"
    return gcp.container.ClusterControlPlaneEndpointsConfigArgs(
        dns_endpoint_config=gcp.container.ClusterControlPlaneEndpointsConfigDnsEndpointConfigArgs(
            allow_external_traffic=by_name, enable_k8s_tokens_via_dns=False, enable_k8s_certs_via_dns=False
        ),
        ip_endpoints_config=gcp.container.ClusterControlPlaneEndpointsConfigIpEndpointsConfigArgs(
            enabled=not by_name
        ),
    )


def authorized_networks(
    args: GcpClusterArgs,
) -> gcp.container.ClusterMasterAuthorizedNetworksConfigArgs | None:
    """The ranges that reach the public address; other customers' machines in Google Cloud do not."""
    if args["endpoint"] == "dns":
        return None
    return gcp.container.ClusterMasterAuthorizedNetworksConfigArgs(
        cidr_blocks=[
            gcp.container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=cidr)
            for cidr in args["api_access"]
        ],
        gcp_public_cidrs_access_enabled=False,
    )


def maintenance(wanted: MaintenanceArgs) -> gcp.container.ClusterMaintenancePolicyArgs:
    """Windows every week; with `hold_nodes` an exclusion that lasts as long as the version is supported."""
    hour, minute = (int(part) for part in wanted["start"].split(":"))
    end = hour + wanted["hours"]
    last_day = f"{_EPOCH[:-2]}{1 + end // 24:02}"
    window = gcp.container.ClusterMaintenancePolicyRecurringWindowArgs(
        start_time=f"{_EPOCH}T{hour:02}:{minute:02}:00Z",
        end_time=f"{last_day}T{end % 24:02}:{minute:02}:00Z",
        recurrence=f"FREQ=WEEKLY;BYDAY={','.join(wanted['days'])}",
    )
    held = gcp.container.ClusterMaintenancePolicyMaintenanceExclusionArgs(
        exclusion_name="hold-nodes",
        start_time=f"{_EPOCH}T00:00:00Z",
        exclusion_options=gcp.container.ClusterMaintenancePolicyMaintenanceExclusionExclusionOptionsArgs(
            scope=_HELD, end_time_behavior="UNTIL_END_OF_SUPPORT"
        ),
    )
    return gcp.container.ClusterMaintenancePolicyArgs(
        recurring_window=window, maintenance_exclusions=[held] if wanted["hold_nodes"] else []
    )


def addons(args: GcpClusterArgs) -> gcp.container.ClusterAddonsConfigArgs:
    """Drivers of every kind of storage of a stack, a DNS cache on every node; no Ingress.

    The drivers cost nothing without volumes, and a data set may be added later. Lustre is mounted at
    its usual port 988, with as many NICs as a node has.
    """
    return gcp.container.ClusterAddonsConfigArgs(
        gce_persistent_disk_csi_driver_config=gcp.container.ClusterAddonsConfigGcePersistentDiskCsiDriverConfigArgs(
            enabled=True
        ),
        gcs_fuse_csi_driver_config=gcp.container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(enabled=True),
        gcp_filestore_csi_driver_config=gcp.container.ClusterAddonsConfigGcpFilestoreCsiDriverConfigArgs(
            enabled=True
        ),
        lustre_csi_driver_config=gcp.container.ClusterAddonsConfigLustreCsiDriverConfigArgs(
            enabled=True, enable_legacy_lustre_port=False
        ),
        dns_cache_config=gcp.container.ClusterAddonsConfigDnsCacheConfigArgs(enabled=True),
        # No object in the cluster can create a load balancer for HTTP, which would be a public one.
        http_load_balancing=gcp.container.ClusterAddonsConfigHttpLoadBalancingArgs(disabled=True),
        # Calico's: Dataplane V2 enforces NetworkPolicies itself.
        network_policy_config=gcp.container.ClusterAddonsConfigNetworkPolicyConfigArgs(disabled=True),
        high_scale_checkpointing_config=gcp.container.ClusterAddonsConfigHighScaleCheckpointingConfigArgs(
            enabled=args.get("checkpoint_addon", False)
        ),
        node_readiness_config=gcp.container.ClusterAddonsConfigNodeReadinessConfigArgs(
            enabled=args.get("readiness_addon", False)
        ),
    )


def monitoring() -> gcp.container.ClusterMonitoringConfigArgs:
    """Metrics to Cloud Monitoring and Managed Service for Prometheus; dropped packets of Dataplane V2 too."""
    return gcp.container.ClusterMonitoringConfigArgs(
        enable_components=list(METRICS),
        managed_prometheus=gcp.container.ClusterMonitoringConfigManagedPrometheusArgs(
            enabled=True,
            # Further scraped, and billed, metrics need a PodMonitoring.
            auto_monitoring_config=gcp.container.ClusterMonitoringConfigManagedPrometheusAutoMonitoringConfigArgs(
                scope="NONE"
            ),
        ),
        advanced_datapath_observability_config=gcp.container.ClusterMonitoringConfigAdvancedDatapathObservabilityConfigArgs(
            enable_metrics=True, enable_relay=False
        ),
    )


def notifications(topic: pulumi.Input[str] | None) -> gcp.container.ClusterNotificationConfigArgs | None:
    """Upgrades and security bulletins to a Pub/Sub topic."""
    if topic is None:
        return None
    return gcp.container.ClusterNotificationConfigArgs(
        pubsub=gcp.container.ClusterNotificationConfigPubsubArgs(
            enabled=True,
            topic=topic,
            filter=gcp.container.ClusterNotificationConfigPubsubFilterArgs(event_types=list(_EVENTS)),
        )
    )


def groups(name: str | None) -> gcp.container.ClusterAuthenticatorGroupsConfigArgs | None:
    """Google groups for RoleBindings: the members of this group."""
    return gcp.container.ClusterAuthenticatorGroupsConfigArgs(security_group=name) if name else None


def first_pool(account: pulumi.Input[str], key: pulumi.Input[str]) -> gcp.container.ClusterNodeConfigArgs:
    """The pool that GKE creates with every cluster, and that is deleted at once.

    It counts while it exists: disks without SSDs fit into the 250 GB that new projects have of these
    (terraform-google-kubernetes-engine issue 1795), and an organization that requires Shielded VMs requires
    them here (terraform-provider-google issue 4976).
    """
    return gcp.container.ClusterNodeConfigArgs(
        machine_type="e2-medium",
        disk_type="pd-standard",
        disk_size_gb=30,
        boot_disk_kms_key=key,
        service_account=account,
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        metadata={"disable-legacy-endpoints": "true"},
        shielded_instance_config=gcp.container.ClusterNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
        workload_metadata_config=gcp.container.ClusterNodeConfigWorkloadMetadataConfigArgs(
            mode="GKE_METADATA"
        ),
    )


def workload_pool(args: GcpClusterArgs) -> str:
    """The workload identity pool of pods."""
    return f"{args['project']}.svc.id.goog"


def reach(wanted: gcp.container.ClusterArgs, args: GcpClusterArgs) -> None:
    """The network: pods have addresses of the VPC; Dataplane V2 enforces NetworkPolicies."""
    wanted.network = args["network"]
    wanted.subnetwork = args["subnetwork"]
    wanted.networking_mode = "VPC_NATIVE"
    wanted.ip_allocation_policy = gcp.container.ClusterIpAllocationPolicyArgs(
        cluster_secondary_range_name=args["pod_range_name"],
        services_secondary_range_name=args["service_range_name"],
        stack_type="IPV4",
    )
    wanted.default_max_pods_per_node = args["pods_per_node"]
    wanted.datapath_provider = "ADVANCED_DATAPATH"
    wanted.enable_multi_networking = args.get("multi_networking", False)
    wanted.enable_intranode_visibility = True  # flow logs see pods of one node, too
    wanted.gateway_api_config = gcp.container.ClusterGatewayApiConfigArgs(channel="CHANNEL_DISABLED")
    # With external addresses a Service can intercept traffic of others (CVE-2020-8554).
    wanted.service_external_ips_config = gcp.container.ClusterServiceExternalIpsConfigArgs(enabled=False)
    wanted.private_cluster_config = gcp.container.ClusterPrivateClusterConfigArgs(enable_private_nodes=True)
    wanted.control_plane_endpoints_config = endpoints(args)
    wanted.master_authorized_networks_config = authorized_networks(args)


def guard(wanted: gcp.container.ClusterArgs, args: GcpClusterArgs) -> None:
    """Identities and permissions, and the boot of nodes."""
    wanted.workload_identity_config = gcp.container.ClusterWorkloadIdentityConfigArgs(
        workload_pool=workload_pool(args)
    )
    wanted.authenticator_groups_config = groups(args.get("groups"))
    wanted.enable_legacy_abac = False
    wanted.master_auth = gcp.container.ClusterMasterAuthArgs(
        client_certificate_config=gcp.container.ClusterMasterAuthClientCertificateConfigArgs(
            issue_client_certificate=False
        )
    )
    # Without a login, only health checks; no binding for all accounts.
    wanted.anonymous_authentication_config = gcp.container.ClusterAnonymousAuthenticationConfigArgs(
        mode="LIMITED"
    )
    wanted.rbac_binding_config = gcp.container.ClusterRbacBindingConfigArgs(
        enable_insecure_binding_system_authenticated=False,
        enable_insecure_binding_system_unauthenticated=False,
    )
    # Allowed images are defined by admission policies of the cluster.
    wanted.binary_authorization = gcp.container.ClusterBinaryAuthorizationArgs(evaluation_mode="DISABLED")
    wanted.enable_shielded_nodes = True
    # Workloads are scanned; images are scanned in their registry.
    wanted.security_posture_config = gcp.container.ClusterSecurityPostureConfigArgs(
        mode="BASIC", vulnerability_mode="VULNERABILITY_DISABLED"
    )
    wanted.node_pool_defaults = gcp.container.ClusterNodePoolDefaultsArgs(
        node_config_defaults=gcp.container.ClusterNodePoolDefaultsNodeConfigDefaultsArgs(
            # Images are streamed: training images of 20 GiB start in seconds.
            gcfs_config=gcp.container.ClusterNodePoolDefaultsNodeConfigDefaultsGcfsConfigArgs(enabled=True),
            insecure_kubelet_readonly_port_enabled="FALSE",
        )
    )
