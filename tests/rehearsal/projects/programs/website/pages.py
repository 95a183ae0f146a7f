"""A component: a bucket and its files."""

import pulumi
import pulumi_aws as aws


class Site(pulumi.ComponentResource):
    """Files of a folder in a bucket."""

    def __init__(
        self,
        name: str,
        bucket: pulumi.Input[str],
        pages: dict[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("website:index:Site", name, None, opts)
        inside = pulumi.ResourceOptions(parent=self)
        self.bucket = aws.s3.Bucket(f"{name}-bucket", bucket=bucket, opts=inside)
        for page, text in pages.items():
            aws.s3.BucketObject(
                page, bucket=self.bucket.id, content=text, content_type="text/html", opts=inside
            )
        self.register_outputs({"bucket": self.bucket.id})
