"""Every Python process with this folder on PYTHONPATH imports this file: it injects the fault that FAULT describes.

FAULT is `what@event:detail`: what happens, and when, so that nothing depends on time:

| what | |
|---|---|
| SIGINT, SIGTERM, SIGKILL | the process gets this signal |
| ENOSPC, EIO | the call fails with this error |
| MEMORY | the process may allocate no more than it has |

| event | when |
|---|---|
| import:NAME | before the module is imported |
| read:NAME | before the file of this name is opened for reading |
| write:N | before a file below the working folder is opened for writing, for the N-th time |
| sync:N | before a written file is made to last, for the N-th time |
| fork:1 | in a new process |

With `worker` in FAULT_IN it happens in every process but the first, else only in the first. A file FAULT_SEEN says that
it happened.
"""

import errno
import os
import resource
import signal
import sys
from pathlib import Path

_SLACK = 1 << 20


def _inject(fault: str, in_worker: bool) -> None:
    what, _, moment = fault.partition("@")
    folder = Path.cwd()
    pid = os.environ.setdefault("FAULT_PID", str(os.getpid()))
    counts: dict[str, int] = {}
    fired: list[int] = []  # the processes where it happened; a fork inherits what its parent has

    def reach(event: str, detail: object = None) -> None:
        counts[event] = counts.get(event, 0) + 1
        if moment != f"{event}:{counts[event] if detail is None else detail}" or os.getpid() in fired:
            return
        if (str(os.getpid()) != pid) != in_worker:
            return
        fired.append(os.getpid())
        os.close(os.open(os.environ["FAULT_SEEN"], os.O_CREAT | os.O_WRONLY))
        if what.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, what))
        elif what == "MEMORY":
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + _SLACK, size + _SLACK))
        else:
            code = getattr(errno, what)
            raise OSError(code, os.strerror(code))

    def audit(event: str, args: tuple) -> None:
        if event == "import":
            reach("import", args[0])
        elif event == "open" and isinstance(args[0], (str, os.PathLike)):
            path, flags = Path(args[0]).resolve(), args[2]
            if not flags & (os.O_WRONLY | os.O_RDWR):
                reach("read", path.name)
            elif path.is_relative_to(folder):
                reach("write")
        elif event == "sqlite3.connect":
            reach("read", Path(args[0]).name)

    def synced(descriptor: int) -> None:
        reach("sync")
        sync(descriptor)

    os.fsync, sync = synced, os.fsync
    os.register_at_fork(after_in_child=lambda: reach("fork"))
    sys.addaudithook(audit)


def inject() -> None:
    """Inject what the environment says, if anything."""
    if "FAULT" in os.environ:
        _inject(os.environ["FAULT"], os.environ.get("FAULT_IN") == "worker")


inject()
