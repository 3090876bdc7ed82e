"""Qrels and memberships from entity annotations, as in NTCIR's FairWeb tasks."""

from fairevals.derive.agreement import describe_derived, summarise
from fairevals.derive.annotations import Annotation, Annotations, read_annotations
from fairevals.derive.pages import AnnotatedPage, Derived, derive, write_derived

__all__ = [
    "AnnotatedPage",
    "Annotation",
    "Annotations",
    "Derived",
    "derive",
    "describe_derived",
    "read_annotations",
    "summarise",
    "write_derived",
]
