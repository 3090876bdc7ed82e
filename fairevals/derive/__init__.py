"""Qrels and memberships from entity annotations, as in NTCIR's FairWeb tasks."""

from fairevals.derive.agreement import describe_derived, summarise
from fairevals.derive.pages import Annotation, Annotations, Derived, derive, read_annotations, write_derived

__all__ = [
    "Annotation",
    "Annotations",
    "Derived",
    "derive",
    "describe_derived",
    "read_annotations",
    "summarise",
    "write_derived",
]
