"""The choice of a cloud: what commands use of AWS or Google Cloud."""

from trainstack.cli.clouds.services import CloudServices


def services_of(cloud: str) -> CloudServices:
    """The services of the cloud of a spec or of a stack's outputs."""
    if cloud == "gcp":
        from trainstack.cli.clouds import gcp  # noqa: PLC0415 - the SDK of one cloud is slow to import

        return gcp
    from trainstack.cli.clouds import aws  # noqa: PLC0415

    return aws
