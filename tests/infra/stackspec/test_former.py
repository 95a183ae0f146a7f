"""Stack files of the former form."""

from tests.infra.stackspec.stack_files import Values, problems


def test_a_stack_file_of_the_former_form_is_refused_with_the_new_form(values: Values) -> None:
    old = values["spec"]
    del old["layout"], old["on"], old["data"]
    old["network"] = {"zones": ["us-east-1a", "us-east-1b"], "nat": "single"}
    old["cluster"] = {"admin_principal_arns": ["arn:aws:iam::123456789012:role/platform"]}
    old["pools"] = [
        {
            "name": "a100",
            "instance_type": "p4d.24xlarge",
            "purpose": "training",
            "capacity": "capacity_block",
            "reservation_id": "cr-0123456789abcdef0",
            "zones": ["us-east-1b"],
            "efa": True,
            "max_size": 4,
        }
    ]
    old["storage"] = {"lustre": {"capacity_gib": 1300, "throughput_mb_s_per_tib": 125, "zone": "us-east-1b"}}
    old["tracking"]["min_acu"] = 1
    found = {problem.path: str(problem) for problem in problems(values)}
    assert 'Write `layout.zones: ["us-east-1a", "us-east-1b"]`.' in found["network.zones"]
    assert 'Write `on.nat: "single"`.' in found["network.nat"]
    assert 'Write `layout.pools[0].purchase.kind: "block"`.' in found["pools[0].capacity"]
    assert "got 'capacity_block'" in found["pools[0].capacity"] and "Pulumi.dev.yaml" in found["network.nat"]
    assert 'Write `layout.pools[0].machine: "p4d.24xlarge"`.' in found["pools[0].instance_type"]
    assert "Write `layout.pools[0].rdma: true`." in found["pools[0].efa"]
    assert "Write `on.database.min_acu: 1`." in found["tracking.min_acu"]
    assert "Write `data.shared_fs.capacity_gib: 1300`." in found["storage.lustre.capacity_gib"]
    # What is wrong with the value itself is said in the same pass.
    assert "1200 GiB" in found["data.shared_fs"]
    assert not {"layout.pools", "on.admin_arns"} & set(found)
