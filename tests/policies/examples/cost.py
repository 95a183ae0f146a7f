"""Examples of the rules COST."""

from tests.policies.recording.example import DROP, Example, Made

_LOGS = Made("aws:cloudwatch/logGroup:LogGroup", {"name": "/train/flow", "retentionInDays": 30})

EXAMPLES = {
    "MLS-COST-07": Example(
        {"logs": _LOGS}, {"logs": _LOGS.but(retentionInDays=DROP)}, at="logs", path="retentionInDays"
    ),
}
