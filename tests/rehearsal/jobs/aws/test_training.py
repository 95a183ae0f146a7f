"""Hosts of a job train together with torch, as they would on machines of the service."""

from tests.rehearsal.jobs.aws.account import Account

_TRAIN = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item():g}")
dist.destroy_process_group()
"""
_LAUNCH = """
import json, os, subprocess, sys
place = json.load(open(os.environ["SAGEMAKER_BASE_DIR"] + "/input/config/resourceconfig.json"))
hosts = sorted(place["hosts"])
rank = hosts.index(place["current_host"])
print(f"{os.environ['HOSTNAME']} is node {rank}")
words = ["--nnodes", str(len(hosts)), "--node_rank", str(rank), "--master_addr", hosts[0]]
sys.exit(subprocess.call(["torchrun", *words, "--master_port", "17777", sys.argv[1]]))
"""


def test_two_hosts_reduce_together(account: Account) -> None:
    s3 = account.client("s3")
    s3.put_object(Bucket="code-bucket", Key="code/train.py", Body=_TRAIN)
    s3.put_object(Bucket="code-bucket", Key="code/launch.py", Body=_LAUNCH)
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://code-bucket/code/"}
    account.start(
        script="cd /opt/ml/input/data/code && python3 launch.py train.py",
        InputDataConfig=[{"ChannelName": "code", "DataSource": {"S3DataSource": source}}],
        ResourceConfig={"InstanceType": "ml.g6.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 10},
        StoppingCondition={"MaxRuntimeInSeconds": 300},
    )
    found = account.ended("job-1", 150)
    events = account.client("logs").filter_log_events(logGroupName="/aws/sagemaker/TrainingJobs")["events"]
    said = sorted(event["message"] for event in events)
    assert found["TrainingJobStatus"] == "Completed", said
    for line in ("algo-1 is node 0", "algo-2 is node 1", "rank 0 of 2: 3", "rank 1 of 2: 3"):
        assert line in said
