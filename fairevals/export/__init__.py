"""What platforms and participants need of a task: a bundle for Codabench, TIRA's evaluation, a file for each run."""

PLATFORMS = ("codabench", "tira", "participants")
