"""The browser tool in which assessors name the entities of pooled pages: `fairevals annotate`."""

from fairevals.annotate.export import export_annotations, status
from fairevals.annotate.server import AnnotationInputs, serve
