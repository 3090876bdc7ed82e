"""The report of a task: what is computed (`gather`), drawn (`pictures`) and written (`write`)."""

import os
import sys
from contextlib import suppress

if "matplotlib" not in sys.modules and (backend := os.environ.pop("MPLBACKEND", None)) is not None:
    # matplotlib cannot be imported if the variable names no backend of it. Figures here are files and need none; the
    # variable keeps its meaning for the rest of the program.
    try:
        import matplotlib as mpl

        with suppress(ValueError):
            mpl.rcParams["backend"] = backend
    finally:
        os.environ["MPLBACKEND"] = backend
