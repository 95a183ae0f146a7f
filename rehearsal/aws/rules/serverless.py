"""Functions of Lambda, queues of SQS, tables of DynamoDB, alarms, groups of Auto Scaling."""

import json
from collections.abc import Iterator, Mapping

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.identity.granted import lacks
from rehearsal.aws.rules.reading import document, items, named, number, text, trusts
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at, has_unknown, known
from rehearsal.core.rules.model import Violation

_FUNCTION, _QUEUE = "aws:lambda/function:Function", "aws:sqs/queue:Queue"
_TABLE = "aws:dynamodb/table:Table"
_ALARM, _SCALED = "aws:cloudwatch/metricAlarm:MetricAlarm", "aws:autoscaling/group:Group"
_KEYS = "botocore 1.44.5 dynamodb/2012-08-10 CreateTableInput (AttributeDefinitions, KeySchema)"
_RESERVED = (
    "_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR",
)  # fmt: skip


@BOOK.rule(
    "AWS-LAMBDA-003", _FUNCTION, source="cfn-lint 1.58.0 aws_lambda_function/environment_variable_keys"
)
def own_variables(inputs: Properties) -> Iterator[Violation]:
    """A function sets no variable that Lambda sets."""
    variables = at(inputs, "environment.variables")
    for name in variables if isinstance(variables, Mapping) else ():
        if name in _RESERVED:
            message = f"Lambda was unable to configure your environment variables because {name} is reserved"
            yield Violation(f"environment.variables.{name}", message, "Choose another name.")


@BOOK.rule("AWS-LAMBDA-004", _FUNCTION, source="botocore 1.44.5 lambda/2015-03-31 CreateFunctionRequest")
def runtime_or_image(inputs: Properties) -> Iterator[Violation]:
    """A function of a zip file has a runtime and a handler; one of an image has an image and neither."""
    kind = inputs.get("packageType", "Zip")
    if kind == "Zip":
        for name in ("runtime", "handler"):
            if inputs.get(name) in (None, ""):
                yield Violation(name, "a function with packageType Zip needs it", f"Give the {name}.")
    elif kind == "Image":
        if inputs.get("imageUri") is None:
            yield Violation("imageUri", "a function with packageType Image needs it")
        for name in ("runtime", "handler", "layers"):
            if inputs.get(name):
                yield Violation(name, "a function with packageType Image takes none", "Leave it out.")


@BOOK.rule_around(
    "AWS-LAMBDA-005",
    _FUNCTION,
    source="serverless/serverless issue 4384, pdomala/LambdaCDDemo issue 1 (text)",
)
def role_trusts_lambda(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The role of a function trusts lambda.amazonaws.com."""
    role = site.find(inputs.get("role"), "iam/role:Role")
    if role is not None and not site.preview and not trusts(role, "lambda.amazonaws.com"):
        yield Violation(
            "role",
            "The role defined for the function cannot be assumed by Lambda.",
            f"Let the trust policy of {named(role)} allow sts:AssumeRole to lambda.amazonaws.com.",
            "InvalidParameterValueException",
        )


@BOOK.rule_around(
    "AWS-LAMBDA-006",
    _FUNCTION,
    source="aws/aws-sam-cli issue 617, serverless/serverless issue 1966 (text); AWS Lambda Developer Guide, "
    "Giving Lambda functions access to resources in an Amazon VPC (required IAM permissions)",
    advice=True,
)
def role_makes_interfaces(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The role of a function in a VPC may call ec2:CreateNetworkInterface."""
    role = site.find(inputs.get("role"), "iam/role:Role")
    in_vpc = bool(at(inputs, "vpcConfig.subnetIds"))
    if role is not None and in_vpc and not site.preview and lacks(site, role, "ec2:CreateNetworkInterface"):
        yield Violation(
            "role",
            "The provided execution role does not have permissions to call CreateNetworkInterface on EC2; "
            f"the provider waits some minutes for another resource that grants {named(role)} them",
            "Attach service-role/AWSLambdaVPCAccessExecutionRole, and let the function depend on it.",
            "InvalidParameterValueException",
        )


@BOOK.rule("AWS-CW-001", _ALARM, source="botocore 1.44.5 cloudwatch/2010-08-01 PutMetricAlarmInput (Period)")
def period(inputs: Properties) -> Iterator[Violation]:
    """The period of an alarm is 10, 20 or 30 seconds, or whole minutes."""
    value = number(inputs.get("period"))
    if value is not None and value not in (10, 20, 30) and (value < 60 or value % 60):
        near = max(60, round(value / 60) * 60)
        message = f"Period must be 10, 20, 30 or a multiple of 60, not {value:.0f}"
        yield Violation("period", message, f"The nearest is {near}.", "ValidationError")


@BOOK.rule("AWS-ASG-002", _SCALED, source="botocore 1.44.5 autoscaling/2011-01-01 CreateAutoScalingGroupType")
def sizes_in_order(inputs: Properties) -> Iterator[Violation]:
    """The desired size of a group is between its minimum and its maximum."""
    low, high = number(inputs.get("minSize")), number(inputs.get("maxSize"))
    wanted = number(inputs.get("desiredCapacity"))
    if low is not None and high is not None and low > high:
        yield Violation("minSize", f"Max bound, {high:.0f}, must be greater than or equal to {low:.0f}")
    elif wanted is not None and low is not None and high is not None and not low <= wanted <= high:
        message = f"Desired capacity:{wanted:.0f} must be between the specified min and max size"
        yield Violation("desiredCapacity", f"{message}: {low:.0f} to {high:.0f}", "", "ValidationError")


@BOOK.rule(
    "AWS-SQS-001", _QUEUE, source="cfn-lint 1.58.0 aws_sqs_queue/properties; Amazon SQS API CreateQueue"
)
def fifo_name(inputs: Properties) -> Iterator[Violation]:
    """The names of FIFO queues, and no others, end in .fifo."""
    name, fifo = text(inputs.get("name")), inputs.get("fifoQueue", False)
    if name is not None and fifo is not UNKNOWN and name.endswith(".fifo") != bool(fifo):
        fix = f"Name it {name}.fifo." if fifo else "Set fifoQueue, or choose another name."
        yield Violation("name", f"{name} is not a valid name of this queue", fix, "InvalidParameterValue")
    for own in ("contentBasedDeduplication", "deduplicationScope", "fifoThroughputLimit"):
        if fifo is False and inputs.get(own):
            yield Violation(own, "only FIFO queues have it", "Set fifoQueue.", "InvalidAttributeName")


@BOOK.rule("AWS-SQS-002", _QUEUE, source="Amazon SQS API CreateQueue (RedrivePolicy)")
def redrive(inputs: Properties) -> Iterator[Violation]:
    """A redrive policy names a queue, and a number of receives from 1 to 1000."""
    given = inputs.get("redrivePolicy")
    policy = document(given)
    if policy is None:
        if isinstance(given, str) and given:
            yield Violation("redrivePolicy", "it is not valid JSON")
        return
    count = policy.get("maxReceiveCount")
    plain = (
        int(count) if isinstance(count, int | float) or (isinstance(count, str) and count.isdigit()) else None
    )
    if not has_unknown(policy) and (
        plain is None or not 1 <= plain <= 1000 or not policy.get("deadLetterTargetArn")
    ):
        message = f"Value {json.dumps(policy)} for parameter RedrivePolicy is invalid"
        fix = "It needs deadLetterTargetArn, and maxReceiveCount from 1 to 1000."
        yield Violation("redrivePolicy", message, fix, "InvalidParameterValue")


@BOOK.rule("AWS-DDB-001", _TABLE, source=_KEYS)
def keys_are_attributes(inputs: Properties) -> Iterator[Violation]:
    """The keys of a table and its indexes are its declared attributes, all of them and no others."""
    rows = [(path, one.get("name")) for path, one in items(inputs, "attributes")]
    used: list[tuple[str, object]] = [(name, inputs.get(name)) for name in ("hashKey", "rangeKey")]
    for group in ("globalSecondaryIndexes", "localSecondaryIndexes"):
        for path, index in items(inputs, group):
            used += [(f"{path}.{name}", index.get(name)) for name in ("hashKey", "rangeKey")]
            schema = index.get("keySchemas")
            if schema is UNKNOWN:
                return
            used += [
                (f"{path}.keySchemas", row.get("attributeName"))
                for row in schema or ()
                if isinstance(row, dict)
            ]
    names = [name for _, name in rows]
    if UNKNOWN in names or UNKNOWN in [name for _, name in used] or inputs.get("restoreSourceName"):
        return
    if any(inputs.get(group) is UNKNOWN for group in ("attributes", "globalSecondaryIndexes")):
        return
    for path, name in used:
        if known(name) and name not in names:
            yield Violation(
                path, f"{name} is not among the attributes of the table", "Declare it in attributes."
            )
    for path, name in rows:
        if name not in [one for _, one in used]:
            message = f"all attributes must be indexed: {name} is no key of the table or an index"
            yield Violation(f"{path}.name", message, "Remove it: other attributes are not declared.")


@BOOK.rule("AWS-DDB-002", _TABLE, source="botocore 1.44.5 dynamodb/2012-08-10 CreateTableInput (BillingMode)")
def capacity(inputs: Properties) -> Iterator[Violation]:
    """A provisioned table has capacities, one with payment per request has none."""
    mode = inputs.get("billingMode", "PROVISIONED")
    for name in ("readCapacity", "writeCapacity"):
        value = inputs.get(name)
        if mode == "PROVISIONED" and value in (None, 0) and not inputs.get("restoreSourceName"):
            yield Violation(name, "billingMode PROVISIONED needs it, 1 or more", "Or set PAY_PER_REQUEST.")
        elif mode == "PAY_PER_REQUEST" and known(value) and value != 0:
            yield Violation(name, "billingMode PAY_PER_REQUEST takes none", "Leave it out.")
