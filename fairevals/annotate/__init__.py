"""The browser tool in which assessors name the entities of pooled pages: `fairevals annotate`."""
