"""Qrels and memberships from entity annotations, as in NTCIR's FairWeb tasks."""

from fairevals.derive.agreement import describe_derived
from fairevals.derive.pages import derive, read_annotations, write_derived
