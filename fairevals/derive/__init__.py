"""From entity annotations to qrels and memberships, as NTCIR's FairWeb makes them."""

from fairevals.derive.annotations import Annotation, Annotations, read_annotations
from fairevals.derive.files import write
from fairevals.derive.pages import Conflict, Derived, derive
from fairevals.derive.summary import Summary, describe, summarise

__all__ = [
    "Annotation",
    "Annotations",
    "Conflict",
    "Derived",
    "Summary",
    "derive",
    "describe",
    "read_annotations",
    "summarise",
    "write",
]
