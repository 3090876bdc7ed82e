"""Worker processes: they call functions for this process, and end when it ends, however that happens."""

import gc
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from typing import Any

from fairevals.errors import FairevalsError, escape

AHEAD = 4
"""How many calls per worker are taken before their turn, so that all workers are busy and little is in memory."""


@dataclass(eq=False)
class _Call:
    name: str
    arguments: tuple[Any, ...]
    deaths: int = 0
    """How many workers have died while computing it."""
    reply: tuple[Any, BaseException | None] | None = None

    def result(self) -> Any:
        """What the call returned; raises what it raised."""
        result, error = self.reply or (None, None)
        if error is not None:
            raise error
        return result


@dataclass(frozen=True)
class _Report:
    """What a call sends before its result."""

    value: Any


class Workers:
    """Up to `jobs` processes, started when they are needed; each calls `initializer(*initargs)` first.

    Unlike `concurrent.futures.ProcessPoolExecutor` it knows which call each process is at. If one is killed, only that
    call is repeated, once, while the other processes go on.
    """

    def __init__(self, jobs: int, initializer: Callable[..., object] | None = None, *initargs: Any) -> None:
        self.jobs, self._start = jobs, (initializer, initargs)
        self._context: Any = get_context()
        if self._context.get_start_method() == "forkserver":
            # A running server does not pass on which signals are blocked, and is not faster without preloading.
            self._context = get_context("spawn")
        self._processes: dict[Any, Any] = {}  # by the connection to each
        self._busy: dict[Any, _Call] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        # They have nothing to finish: all results have come, or nobody needs the others.
        for process in self._processes.values():
            process.kill()
        for connection in list(self._processes):
            self._remove(connection)

    def results(
        self, function: Callable[..., Any], calls: Iterable[tuple[str, tuple[Any, ...]]]
    ) -> Iterator[Any]:
        """The results of the calls, in order; a call is a name for messages, and the arguments.

        Raises what a call raises, and `FairevalsError` if two workers have died while computing a call.
        """
        calls, taken, unsent = iter(calls), deque[_Call](), deque[_Call]()
        while True:
            while unsent and len(self._busy) < self.jobs:
                self._send(unsent.popleft(), function)
            for call in islice(calls, AHEAD * max(self.jobs, 2) - len(taken)):
                taken.append(_Call(*call))
                unsent.append(taken[-1])
                if len(self._busy) < self.jobs:  # at once: it may take time to make the next call
                    self._send(unsent.popleft(), function)
            if not taken:
                return
            if taken[0].reply is None:
                unsent.extendleft(call for call in self._received() if call.reply is None)
                continue
            yield taken.popleft().result()

    def as_finished(
        self,
        function: Callable[..., Any],
        calls: Iterable[tuple[str, tuple[Any, ...]]],
        on_report: Callable[[Any], object] = lambda report: None,
    ) -> Iterator[Any]:
        """The results of the calls as they come, whatever their order; else like `results`.

        `on_report` is called with what the calls give to `send_report`.
        """
        unsent = deque(_Call(*call) for call in calls)
        while unsent or self._busy:
            while unsent and len(self._busy) < self.jobs:
                self._send(unsent.popleft(), function)
            for call in self._received(on_report):
                if call.reply is None:
                    unsent.appendleft(call)
                else:
                    yield call.result()

    def _send(self, call: _Call, function: Callable[..., Any]) -> None:
        data = ForkingPickler.dumps((function, call.arguments))
        idle = [connection for connection in self._processes if connection not in self._busy]
        connection = idle[0] if idle else self._add()
        self._busy[connection] = call
        with suppress(OSError):  # it has died, which `_received` notices
            connection.send_bytes(data)

    def _received(self, on_report: Callable[[Any], object] = lambda report: None) -> Iterator[_Call]:
        """Wait until a worker has sent something or died, and give the calls of all that have replied or died."""
        ready: list[Any] = wait(list(self._busy))
        for connection in ready:
            call = self._busy[connection]
            try:
                reply = ForkingPickler.loads(connection.recv_bytes())
            except (EOFError, OSError):
                del self._busy[connection]
                code = self._remove(connection)
                call.deaths += 1
                if call.deaths == 2:
                    how = f"signal {-code}" if code < 0 else f"exit code {code}"
                    reason = f"a worker process was killed, and so was the next one ({how})"
                    call.reply = (
                        None,
                        FairevalsError(
                            f"{escape(call.name, 300)}: {reason}, perhaps for lack of memory; try fewer jobs"
                        ),
                    )
            else:
                if isinstance(reply, _Report):
                    on_report(reply.value)
                    continue
                del self._busy[connection]
                call.reply = reply
            yield call

    def _add(self) -> Any:
        with _signals_held_back(self._context.get_start_method()):
            here, there = self._context.Pipe()
            # Closed here at once, so that nobody but the worker has that end, and its death is the end of replies.
            with there:
                process = self._context.Process(target=_work, args=(there, *self._start), daemon=True)
                gc.freeze()  # a forked process would copy every page in which it looks for garbage
                try:
                    process.start()
                except OSError as error:
                    reason = escape(error.strerror or str(error), 200)
                    raise FairevalsError(
                        f"a worker process cannot be started ({reason}); try fewer jobs"
                    ) from None
                finally:
                    gc.unfreeze()
            self._processes[here] = process
        return here

    def _remove(self, connection: Any) -> int:
        process = self._processes.pop(connection)
        connection.close()
        process.join()
        return int(process.exitcode)


@contextmanager
def _signals_held_back(method: str) -> Iterator[None]:
    """Delay signals while a process starts: it must not run this one's handlers, which would not know of it yet."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    if method == "spawn":
        resource_tracker.ensure_running()  # `start` would do so, and let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Any, initializer: Callable[..., object] | None, initargs: tuple[Any, ...]) -> None:
    """What a worker does."""
    # Ctrl-C reaches all processes of a terminal: the one that started this one decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer is not None:
        initializer(*initargs)
    _to_parent.append(connection)
    with suppress(EOFError, OSError):  # the other end is closed
        while True:
            connection.send_bytes(_reply(connection.recv_bytes()))


_to_parent: list[Any] = []
"""In a worker: its connection to the process that started it."""


def send_report(value: Any) -> None:
    """In a call of `Workers.as_finished`: send a value ahead of the result."""
    _to_parent[-1].send_bytes(ForkingPickler.dumps(_Report(value)))


def _reply(call: bytes) -> Any:
    """The result of a call or the error that it raises, with the traceback as a note."""
    try:
        function, arguments = ForkingPickler.loads(call)
        return ForkingPickler.dumps((function(*arguments), None))
    except BaseException as error:
        trace = "".join(traceback.format_exception(error))
        error.add_note(trace)
        try:
            reply = ForkingPickler.dumps((None, error))
            ForkingPickler.loads(reply)
        except Exception:  # not every exception can be pickled, or read again
            return ForkingPickler.dumps((None, RuntimeError(trace)))
        return reply


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
