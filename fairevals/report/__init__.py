"""The report of a task: what is computed (`gather`), drawn (`pictures`) and written (`write`)."""
