"""`python -m fairevals`."""

from __future__ import annotations

import sys

from fairevals.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
