"""Failure reasons of training jobs, as the service reports them.

Source: FailureReason in aws/sagemaker-python-sdk issues 357 and 1225, aws-samples/amazon-sagemaker-ml-
pipeline-deploy-with-terraform issue 12 ("AlgorithmError: , exit code: 1"), aws/amazon-sagemaker-examples
issue 4384 ("ClientError: Data download failed:Unable to download object ..."), DIAGNijmegen/
rse-grand-challenge issue 2631 (CapacityError).
"""

from rehearsal.dataplane.aws.http import ServiceError

CAPACITY = (
    "CapacityError: Unable to provision requested ML compute capacity. "
    "Please retry using a different ML instance type."
)
INTERNAL = "InternalServerError: We encountered an internal error. Please try again."


class TrainingJobError(Exception):
    """Ends the job as Failed, with this reason."""


def no_download(place: str, error: ServiceError) -> TrainingJobError:
    """An input cannot be read with the rights of the job's role and the bucket."""
    why = f"({error.code}: {error.message})"
    return TrainingJobError(f"ClientError: Data download failed:Unable to download object {place} {why}")


def no_upload(place: str, error: ServiceError) -> TrainingJobError:
    """An output cannot be written with the rights of the job's role and the bucket."""
    why = f"({error.code}: {error.message})"
    return TrainingJobError(f"ClientError: Artifact upload failed:Unable to upload object {place} {why}")


def algorithm_error(message: str, code: int) -> TrainingJobError:
    """A program exited with this code; `message` is what it wrote to /opt/ml/output/failure."""
    end = f", exit code: {code}"
    return TrainingJobError(f"AlgorithmError: {message[: 1024 - len('AlgorithmError: ') - len(end)]}{end}")
