"""Three-way merges of texts: the rendering before, the rendering now and the client's edits."""

from trainstack.stamp.merge.by_key import merged
from trainstack.stamp.merge.outcome import Conflict, Labels, MergedText, MergeNote

__all__ = ["Conflict", "Labels", "MergeNote", "MergedText", "merged"]
