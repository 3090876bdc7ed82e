"""Scoring on a Dask cluster: the pieces of `fairevals.evaluation` on Dask's executor."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from fairevals.errors import FairevalsError, UsageError, escape
from fairevals.evaluation import SharingExecutor

TIMEOUT = 30.0
"""Seconds to wait for a scheduler, and for a worker while none answers."""

LEAST_SILENCE = 3.0
"""Seconds after which a worker may count as frozen: those of a small cluster report twice a second."""


def _same(value: Any) -> Any:
    return value


class Cluster(SharingExecutor):
    """Dask's executor, which can also send a value once for all pieces."""

    def __init__(self, client: Any, timeout: float = TIMEOUT) -> None:
        self._client, self._timeout = client, timeout
        # `pure` would hash every argument to find repeated calls, and there are none. Dask repeats a piece whose
        # worker dies, until its setting `allowed-failures`; one that raises an error is not repeated.
        self._executor: Executor = client.get_executor(pure=False)
        workers = self._workers()
        self.jobs = sum(worker["nthreads"] for worker in workers.values())
        """How many pieces the workers can compute at a time."""

    def _workers(self) -> dict[str, Any]:
        """What the scheduler knows of each worker."""
        scheduler = self._client.scheduler
        if scheduler is None:  # the client has given up
            raise CancelledError
        try:
            known: dict[str, Any] = self._client.sync(scheduler.identity, callback_timeout=self._timeout)
        except TimeoutError:
            raise FairevalsError(f"the Dask scheduler has not answered for {self._timeout:g} s") from None
        return known["workers"]  # type: ignore[no-any-return]

    def share(self, value: Any) -> Any:
        """Send the value to one worker, from which the others fetch it when they need it.

        It is the result of a task, not scattered data: if all workers that hold it die, it is computed again.
        """
        config: Any = import_module("dask.config")
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(_same, value, pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function on a worker; arguments from `share` are replaced by their values there."""
        return self._executor.submit(fn, *args, **kwargs)

    def result(self, name: str, future: Future[Any]) -> Any:
        killed: Any = import_module("distributed.scheduler").KilledWorker
        last, heard = time.monotonic(), set[tuple[str, float]]()
        while not (future.done() or wait([future], timeout=min(1.0, self._timeout)).done):
            now, before = time.monotonic(), heard
            heard = {(name, worker["last_seen"]) for name, worker in self._workers().items()}
            if heard - before:  # a frozen worker is known, but not heard of again
                last = now
            limit = max(self._timeout, LEAST_SILENCE) if heard else self._timeout
            if now - last > limit:
                raise FairevalsError(f"no worker of the Dask cluster has answered for {limit:g} s")
        try:
            return future.result()
        except killed as error:
            died = f"{error.allowed_failures + 1} workers of the Dask cluster died while computing it"
            raise FairevalsError(f"{escape(name, 300)}: {died}, perhaps for lack of memory") from None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait)


async def _ask(address: str, timeout: float) -> None:
    """Raise if there is no scheduler: a client that cannot use an address might wait for ever, or hang at exit."""
    distributed: Any = import_module("distributed")
    scheme, place = distributed.comm.parse_address(address)
    if scheme in ("tcp", "tls") and not 0 < distributed.comm.parse_host_port(place)[1] < 1 << 16:
        raise ValueError("expected a port from 1 to 65535")
    arguments = distributed.Security().get_connection_args("client")
    async with asyncio.timeout(timeout):
        # Its own limit does not include the answer; twice the time, so that there is one limit and one message.
        server = distributed.rpc(address, timeout=2 * timeout, connection_args=arguments)
        try:
            kind = (await server.identity())["type"]
        finally:
            await server.close_rpc()
    if kind != "Scheduler":
        raise OSError(f"a {kind} answers")


@contextmanager
def _logs_off() -> Iterator[None]:
    """Silence what Dask logs of lost connections, with tracebacks: an error of this module says the same."""
    with suppress(ImportError):
        import_module("distributed")  # which sets the levels
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _client(address: str, timeout: float) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise UsageError("scoring on a cluster needs: pip install 'fairevals[dask]'") from None
    try:
        distributed.utils.LoopRunner().run_sync(_ask, address, timeout)
        return distributed.Client(address, timeout=timeout, set_as_default=False)
    except Exception as error:  # whatever comes of an answer that is not a scheduler's
        reason = escape(str(error).split("\n")[0], 200) or type(error).__name__
        if type(error) is TimeoutError:
            reason = escape(f"no answer within {timeout:g} s")
        what = f"there is no Dask scheduler at {escape(address)!r} ({reason})"
        raise UsageError(f"{what}; expected an address such as tcp://host:8786") from None


@contextmanager
def connected(address: str, timeout: float = TIMEOUT) -> Iterator[Cluster]:
    """Connect to the cluster at an address such as `tcp://host:8786`; it keeps running afterwards.

    Raises after `timeout` seconds without an answer of the scheduler or of any worker.
    """
    with _logs_off():
        client = _client(address, timeout)
        lost: Any = import_module("distributed.comm").CommClosedError
        try:
            cluster = Cluster(client, timeout)
            if not cluster.jobs:
                raise UsageError(f"the Dask cluster at {escape(address)!r} has no workers")
            yield cluster
        except (CancelledError, lost):
            what = f"the connection to the Dask cluster at {escape(address)!r} was lost"
            raise FairevalsError(what) from None
        finally:
            with suppress(TimeoutError):
                client.close()
