"""`python -m fairevals`, and the program `fairevals`."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys


def _ignore_signals() -> None:
    """From here to the end of the process everything is done: a signal would only change the exit code.

    Python also ends by SIGINT, whatever the exit code, if an interruption has ever left an `exec` of text, as in
    `dataclass`, until another `exec` succeeds.
    """
    exec("")  # noqa: S102
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM"):
        if hasattr(signal, name):  # Windows lacks the last two
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def main() -> int:
    """Run the program. An interruption has the same effect while it is loaded, while it runs and while it ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.set_threshold(50_000)  # modules are many objects, and none of them garbage
    try:
        from fairevals.cli.main import main as run

        code = run()
        _ignore_signals()
        gc.freeze()  # the end of the process frees everything at once; to look for cycles before it takes time
        return code
    except KeyboardInterrupt:
        _ignore_signals()
        with contextlib.suppress(OSError, AttributeError):  # standard error may be closed
            sys.stderr.write("fairevals: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
