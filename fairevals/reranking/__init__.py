"""Fairer rankings of a run that stands: offsets of groups, re-ranking, and the linear programme of fair exposure."""
