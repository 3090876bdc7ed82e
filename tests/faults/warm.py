"""Starts the program many times without loading its modules each time: a process that has loaded them forks.

Each line on standard input is one call, as JSON. The fork gets a session, folder, environment and streams of its own,
and runs the program. The answer is a line with its process id, and one with its exit code.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from importlib import import_module

from fairevals.__main__ import main as program
from fairevals.cli.main import COMMANDS

LIBRARIES = (
    "pandas",
    "scipy.stats",
    "scipy.optimize",
    "matplotlib.pyplot",
    "matplotlib.backends.backend_svg",
)


def serve() -> None:
    """Fork at each call. Only the fork returns, as the process that the call describes."""
    for line in sys.stdin:
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
            continue
        call = json.loads(line)
        os.setsid()
        os.chdir(call["folder"])
        os.environ.clear()
        os.environ.update(call["env"])
        for descriptor, name in enumerate((os.devnull, os.devnull, call["err"])):
            opened = os.open(name, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)
            os.dup2(opened, descriptor)
            os.close(opened)
        sys.argv[1:] = call["words"]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import_module("sitecustomize").inject()
        return
    os._exit(0)


if __name__ == "__main__":
    for module in (*LIBRARIES, *(f"fairevals.cli.{command}" for command in COMMANDS)):
        import_module(module)
    gc.freeze()  # a collection in a fork would copy them
    serve()
    os._exit(program())  # to take all those modules down would take longer than the call
