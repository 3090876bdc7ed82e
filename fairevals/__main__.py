"""`python -m fairevals`, and the program `fairevals`."""

from __future__ import annotations

import contextlib
import signal
import sys


def main() -> int:
    """Run the program; an interruption while it is loaded ends it like a later one."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from fairevals.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        with contextlib.suppress(OSError, AttributeError):  # standard error may be closed
            sys.stderr.write("fairevals: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
