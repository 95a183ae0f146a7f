"""Uses configuration, a local module with a component, random values, functions and the default network."""

import pulumi
import pulumi_aws as aws
import pulumi_random as random
from pages import Site

title = pulumi.Config().require("title")
suffix = random.RandomId("suffix", byte_length=4)
password = random.RandomPassword("password", length=20)
page = pulumi.Output.concat("<h1>", title, "</h1>")
site = Site("site", pulumi.Output.concat("site-", suffix.hex), {"index.html": page}, pulumi.ResourceOptions())

network = aws.ec2.get_vpc(default=True)
subnets = aws.ec2.get_subnets(filters=[{"name": "vpc-id", "values": [network.id]}])
image = aws.ec2.get_ami(
    most_recent=True, owners=["amazon"], filters=[{"name": "name", "values": ["al2023-*"]}]
)
group = aws.ec2.SecurityGroup("web", vpc_id=network.id)
server = aws.ec2.Instance(
    "server",
    ami=image.id,
    instance_type="t3.micro",
    subnet_id=subnets.ids[0],
    vpc_security_group_ids=[group.id],
)
queue = aws.sqs.Queue("jobs")
same = aws.sqs.Queue.get("same", queue.id)
pulumi.export("bucket", site.bucket.id)
pulumi.export("password", password.result)
pulumi.export("queue", same.arn)
