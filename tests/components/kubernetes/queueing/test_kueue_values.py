"""Resources that the controller of Kueue counts."""

import json

from components.kubernetes.queueing import kueue_fields, kueue_values, tenancy


def test_the_controller_counts_every_job_of_managed_namespaces_and_none_elsewhere() -> None:
    values = kueue_values.values(claimed={})
    config = json.loads(values["managerConfig"]["controllerManagerConfigYaml"])
    assert config["apiVersion"] == "config.kueue.x-k8s.io/v1beta2"
    assert config["manageJobsWithoutQueueName"] is True
    assert config["managedJobsNamespaceSelector"] == {"matchLabels": {"trainstack.dev/queueing": "required"}}
    assert config["waitForPodsReady"]["timeout"] == "20m"
    assert config["featureGates"] == {"ElasticJobsViaWorkloadSlices": False, "ReclaimablePods": False}
    assert config["fairSharing"]["preemptionStrategies"]
    assert config["metrics"]["enableClusterQueueResources"] is True
    assert "hugepages-" in config["resources"]["excludeResourcePrefixes"]
    assert "deviceClassMappings" not in config["resources"]
    manager = values["controllerManager"]
    assert manager["replicas"] == 2
    assert manager["manager"]["resources"]["requests"]["memory"] == "1Gi"


def test_claims_for_devices_count_as_the_same_resource() -> None:
    config = kueue_values.manager_config({"vpc.amazonaws.com/efa": "efa.networking.k8s.aws"})
    assert config["resources"]["deviceClassMappings"] == [
        {"name": "vpc.amazonaws.com/efa", "deviceClassNames": ["efa.networking.k8s.aws"]}
    ]


def test_what_no_queue_counts_does_not_keep_jobs_waiting() -> None:
    config = kueue_values.manager_config({}, ["hugepages-2Mi", "example.com/net-0", "example.com/net-0"])
    assert config["resources"]["excludeResourcePrefixes"] == [
        *("hugepages-", "ephemeral-storage", "example.com/net-0")
    ]


def test_a_preempted_pod_ends_before_its_successor_is_given_up() -> None:
    ready = int(kueue_values.PODS_READY_TIMEOUT.removesuffix("m")) * 60
    deletion = int(tenancy.DELETION.removesuffix("m")) * 60
    assert min(ready, deletion) > kueue_fields.MOST_GRACE_S
