from pulumi.provider.experimental.analyzer import Analyzer

from components.aws.cluster.eks import AwsCluster
from components.aws.network.vpc import AwsNetwork
from components.aws.pools.gpu_pool import AwsGpuPool


def test_a_schema_can_be_inferred_so_that_the_components_can_be_packaged() -> None:
    found = Analyzer("trainstack").analyze([AwsNetwork, AwsCluster, AwsGpuPool])["component_definitions"]

    assert set(found) == {"AwsNetwork", "AwsCluster", "AwsGpuPool"}
    assert set(found["AwsGpuPool"].outputs) == {"nodeGroupNames", "labels", "taints"}
    assert {"vpcId", "privateSubnetIds", "efaSecurityGroupId"} <= set(found["AwsNetwork"].outputs)
    assert found["AwsCluster"].inputs["deletionProtection"].optional
    for component in found.values():
        described = {**component.inputs, **component.outputs}
        assert [name for name, prop in described.items() if not prop.description] == []
