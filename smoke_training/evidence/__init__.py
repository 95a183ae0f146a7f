"""Records of measurements: one module per family, written by `line_of` and read by `parse` (pure)."""

from smoke_training.evidence import fabric as fabric
from smoke_training.evidence import gpus as gpus
from smoke_training.evidence import links as links
from smoke_training.evidence import liveness as liveness
from smoke_training.evidence import state as state
from smoke_training.evidence import storage as storage
from smoke_training.evidence import training as training
from smoke_training.evidence import world as world
from smoke_training.evidence.registry import KINDS as KINDS
from smoke_training.evidence.registry import Evidence as Evidence
from smoke_training.evidence.registry import Record as Record
from smoke_training.evidence.registry import UndeliveredError as UndeliveredError
from smoke_training.evidence.registry import document_of as document_of
from smoke_training.evidence.registry import kind as kind
from smoke_training.evidence.registry import kind_of as kind_of
from smoke_training.evidence.registry import line_of as line_of
from smoke_training.evidence.registry import parse as parse
